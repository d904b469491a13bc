-- name: AuditEntries :one
-- Tells whether an administration whose commit was cut is there.
SELECT count(*) FROM audit WHERE audit_id = @audit_id;

-- name: AuditOf :many
-- The newest first, before a time, and of those at that very time the ones before an id.
SELECT audit_id, merchant_id, at, operator, action, detail, origin, times, mac, sequence FROM audit
WHERE merchant_id = @merchant_id AND at >= @since AND at <= @until AND (at < @until OR audit_id < @after)
    AND (@operator::TEXT = '' OR operator = @operator) AND (@action::TEXT = '' OR left(action, length(@action)) = @action)
    AND (@about::TEXT = '' OR strpos(detail, @about) > 0)
ORDER BY at DESC, audit_id DESC
LIMIT @most;

-- name: AuditOfAll :many
-- AuditOf of all merchants and the platform.
SELECT audit_id, merchant_id, at, operator, action, detail, origin, times, mac, sequence FROM audit
WHERE at >= @since AND at <= @until AND (at < @until OR audit_id < @after)
    AND (@operator::TEXT = '' OR operator = @operator) AND (@action::TEXT = '' OR left(action, length(@action)) = @action)
    AND (@about::TEXT = '' OR strpos(detail, @about) > 0)
ORDER BY at DESC, audit_id DESC
LIMIT @most;

-- name: AuditTimes :many
SELECT times FROM audit WHERE audit_id = @audit_id;

-- name: CountAudited :exec
-- As it is now it has no link yet.
UPDATE audit SET times = @times, at = @at, origin = @origin, mac = @mac, sequence = NULL WHERE audit_id = @audit_id;

-- name: AuditHead :one
SELECT sequence, hash, mac, sent FROM audit_head WHERE name = 'head';

-- name: BeginAuditChain :execrows
-- A chain that has links and no head does not begin anew.
INSERT INTO audit_head (name, sequence, hash, mac)
SELECT 'head', 0, @hash, @mac WHERE NOT EXISTS (SELECT 1 FROM audit_chain)
ON CONFLICT (name) DO NOTHING;

-- name: MoveAuditHead :execrows
UPDATE audit_head SET sequence = @sequence, hash = @hash, mac = @mac WHERE name = 'head' AND sequence = @was AND hash = @was_hash;

-- name: SentAudits :exec
UPDATE audit_head SET sent = @sent WHERE name = 'head' AND sent < @sent;

-- name: UnsealedAudits :many
-- The oldest first. Those without a MAC wait: a gateway of the version before may still count one.
SELECT audit_id, merchant_id, at, operator, action, detail, origin, times, mac, sequence FROM audit
WHERE sequence IS NULL AND (mac IS NOT NULL OR at < @settled OR at > @ahead)
ORDER BY at, audit_id
LIMIT @most;

-- name: InsertAuditLinks :exec
INSERT INTO audit_chain (sequence, audit_id, digest, proof, sealed_at, hash, mac)
SELECT unnest(@sequences::INT8[]), unnest(@ids::UUID[]), unnest(@digests::BYTEA[]), unnest(@proofs::TEXT[]), @sealed_at, unnest(@hashes::BYTEA[]), unnest(@macs::BYTEA[]);

-- name: LinkAudits :execrows
UPDATE audit AS a SET sequence = l.sequence
FROM (SELECT unnest(@ids::UUID[]) AS audit_id, unnest(@sequences::INT8[]) AS sequence, unnest(@times::INT8[]) AS times) AS l
WHERE a.audit_id = l.audit_id AND a.sequence IS NULL AND a.times = l.times;

-- name: AuditLinks :many
-- With their entries as these are now: those of a span, and what is gone.
SELECT c.sequence, c.audit_id, c.digest, c.proof, c.sealed_at, c.hash, c.mac,
    a.audit_id AS entry, a.merchant_id, a.at, a.operator, a.action, a.detail, a.origin, a.times, a.sequence AS last
FROM audit_chain AS c
LEFT JOIN audit AS a ON a.audit_id = c.audit_id
WHERE c.sequence > @after AND (a.at IS NULL OR a.at >= @since AND a.at < @until)
ORDER BY c.sequence
LIMIT @most;

-- name: StrayAudits :many
-- Entries that are not what their link is of, or have none.
SELECT a.audit_id, a.merchant_id, a.at, a.operator, a.action, a.detail, a.origin, a.times, a.mac, a.sequence FROM audit AS a
WHERE NOT EXISTS (SELECT 1 FROM audit_chain AS c WHERE c.sequence = a.sequence AND c.audit_id = a.audit_id)
ORDER BY a.at, a.audit_id
LIMIT @most;
