-- name: PluginApprovals :many
-- The newest first.
SELECT approval_id, provider, sha256, manifest_digest, plugin_version, reach, evidence, approved_by, approved_at, confirmed_by, mac
FROM plugin_approvals
ORDER BY approved_at DESC, approval_id;

-- name: PluginApproval :one
SELECT approval_id, provider, sha256, manifest_digest, plugin_version, reach, evidence, approved_by, approved_at, confirmed_by, mac
FROM plugin_approvals
WHERE approval_id = @approval_id;

-- name: InsertPluginApproval :exec
INSERT INTO plugin_approvals (
    approval_id, provider, sha256, manifest_digest, plugin_version, reach, evidence, approved_by, approved_at, confirmed_by, mac
) VALUES (
    @approval_id, @provider, @sha256, @manifest_digest, @plugin_version, @reach, @evidence, @approved_by, @approved_at, '', @mac
);

-- name: ConfirmPluginApproval :execrows
UPDATE plugin_approvals SET confirmed_by = @confirmed_by, mac = @mac
WHERE approval_id = @approval_id AND confirmed_by = '';

-- name: ResealPluginApproval :execrows
UPDATE plugin_approvals SET mac = @becomes WHERE approval_id = @approval_id AND mac = @was;

-- name: PluginHeads :many
SELECT provider, approval_id, before_id, replica_id, changes, changed_at, changed_by, mac FROM plugin_heads
ORDER BY provider;

-- name: InsertPluginHead :execrows
INSERT INTO plugin_heads (provider, approval_id, before_id, replica_id, changes, changed_at, changed_by, mac)
VALUES (@provider, @approval_id, @before_id, @replica_id, @changes, @changed_at, @changed_by, @mac)
ON CONFLICT (provider) DO NOTHING;

-- name: MovePluginHead :execrows
UPDATE plugin_heads SET
    approval_id = @approval_id, before_id = @before_id, replica_id = @replica_id, changes = @changes, changed_at = @changed_at,
    changed_by = @changed_by, mac = @mac
WHERE provider = @provider AND changes = @was AND mac = @was_mac;

-- name: ResealPluginHead :execrows
UPDATE plugin_heads SET mac = @becomes WHERE provider = @provider AND mac = @was;

-- name: ConnectionsOfProvider :one
SELECT count(*) FROM connections WHERE provider = @provider;

-- name: TestConnectionsOf :many
-- Of which a plugin's binary may be tried, in test mode alone.
SELECT merchant_id FROM connections WHERE provider = @provider AND mode = 'test'
ORDER BY merchant_id
LIMIT @most;

-- name: OpenMovementsOfConnection :one
-- What is open on a merchant's own account at a provider; of the platform's, of all merchants.
SELECT count(*) FROM polls AS p
JOIN movements AS m ON m.id = p.movement_id AND m.attempt = p.attempt
WHERE m.provider = @provider AND m.mode = @mode AND m.state IN ('submitting', 'acknowledged', 'pending')
    AND (m.connection_owner = 'platform' AND @platform::BOOL OR m.connection_owner <> 'platform' AND m.merchant_id = @merchant_id);

-- name: OpenMovementsOfProvider :many
-- By operation, of which there is something left to ask.
SELECT m.operation, count(*) AS open
FROM polls AS p
JOIN movements AS m ON m.id = p.movement_id
WHERE m.provider = @provider
GROUP BY m.operation
ORDER BY m.operation;
