-- name: PolicyHead :one
SELECT activation_id, version, changes, changed_at, mac, proposal_id, proposed, proposed_at FROM policy_head WHERE name = 'head';

-- name: InsertPolicyHead :execrows
-- Of several first starts at once one writes it.
INSERT INTO policy_head (name, activation_id, version, changes, changed_at, mac)
VALUES ('head', @activation_id, @version, 1, @changed_at, @mac)
ON CONFLICT (name) DO NOTHING;

-- name: ProposePolicy :execrows
UPDATE policy_head SET proposal_id = @proposal_id::UUID, proposed = @proposed::TEXT, proposed_at = @proposed_at::TIMESTAMPTZ
WHERE name = 'head' AND version = @replaces AND changes = @changes AND proposal_id IS NULL;

-- name: WithdrawPolicyProposal :execrows
UPDATE policy_head SET proposal_id = NULL, proposed = NULL, proposed_at = NULL
WHERE name = 'head' AND proposal_id = @proposal_id::UUID;

-- name: MovePolicyHead :execrows
UPDATE policy_head SET
    activation_id = @activation_id, version = @version, changes = changes + 1, changed_at = @changed_at, mac = @mac,
    proposal_id = NULL, proposed = NULL, proposed_at = NULL
WHERE name = 'head' AND proposal_id = @activation_id AND version = @replaces AND changes = @changes;

-- name: ResealPolicyHead :execrows
UPDATE policy_head SET mac = @becomes WHERE name = 'head' AND mac = @was;

-- name: PolicyVersions :many
-- The newest first, without their files.
SELECT version, number, author, message, forced, predecessor, pushed_at, mac, state, state_at, findings
FROM policy_versions
ORDER BY number DESC;

-- name: PolicyVersion :one
SELECT version, number, files, author, message, forced, predecessor, pushed_at, mac, state, state_at, findings
FROM policy_versions
WHERE version = @version;

-- name: AnyPolicy :one
-- Whether a version was ever pushed or activated, as far as rows are left.
SELECT (EXISTS (SELECT 1 FROM policy_versions) OR EXISTS (SELECT 1 FROM policy_activations))::BOOL AS found;

-- name: PolicyStates :many
SELECT version, state FROM policy_versions WHERE version = ANY(@versions::TEXT[]);

-- name: InsertPolicyVersion :one
INSERT INTO policy_versions (
    version, number, files, author, message, forced, predecessor, pushed_at, mac, state, state_at, findings
) VALUES (
    @version, (SELECT coalesce(max(v.number), 0) + 1 FROM policy_versions AS v), @files, @author, @message, @forced, @predecessor,
    @pushed_at, @mac, @state, @pushed_at, @findings
)
RETURNING number;

-- name: DeleteRefusedPolicy :execrows
DELETE FROM policy_versions WHERE version = @version AND state = 'refused';

-- name: ForgetPolicyVersions :many
-- All but the newest, of those that were refused and of the others, what waits for an
-- operator, and everything that is or ever was in force.
DELETE FROM policy_versions AS v
WHERE (SELECT count(*) FROM policy_versions AS n WHERE n.number > v.number AND (n.state = 'refused') = (v.state = 'refused')) >= @keep::INT8
    AND v.state NOT IN ('active', 'waiting', 'past')
    AND NOT EXISTS (SELECT 1 FROM policy_activations AS a WHERE a.version = v.version AND a.state = 'done')
    AND v.version <> coalesce((SELECT h.proposed FROM policy_head AS h WHERE h.name = 'head'), '')
RETURNING v.version;

-- name: ForgetPolicyActivations :exec
DELETE FROM policy_activations WHERE version = ANY(@versions::TEXT[]);

-- name: ForgetPolicyAnswers :exec
DELETE FROM policy_answers WHERE answered_at < @before;

-- name: SetPolicyState :execrows
UPDATE policy_versions SET state = @becomes, state_at = @at
WHERE version = @version AND state = ANY(@was::TEXT[]);

-- name: RefusePolicy :execrows
UPDATE policy_versions SET state = 'refused', state_at = @at, findings = @findings
WHERE version = @version AND state IN ('pushed', 'waiting');

-- name: ResealPolicyVersion :execrows
UPDATE policy_versions SET mac = @becomes WHERE version = @version AND mac = @was;

-- name: PolicyActivation :one
SELECT activation_id, version, replaces, back_id, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, mac, changes
FROM policy_activations
WHERE activation_id = @activation_id;

-- name: PolicyActivations :many
SELECT activation_id, version, replaces, back_id, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, mac, changes
FROM policy_activations
ORDER BY requested_at DESC, activation_id
LIMIT @most;

-- name: WaitingPolicyActivation :one
SELECT activation_id, version, replaces, back_id, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, mac, changes
FROM policy_activations
WHERE version = @version AND replaces = @replaces AND state = 'waiting'
ORDER BY requested_at, activation_id
LIMIT 1;

-- name: WaitingPolicyActivations :many
SELECT activation_id, version, replaces, back_id, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, mac, changes
FROM policy_activations
WHERE state = 'waiting'
ORDER BY requested_at DESC, activation_id
LIMIT @most;

-- name: InsertPolicyActivation :exec
INSERT INTO policy_activations (
    activation_id, version, replaces, back_id, reason, requested_by, requested_at, confirmed_by, proposed_at, state, decided_at, detail, mac, changes
) VALUES (
    @activation_id, @version, @replaces, @back_id, @reason, @requested_by, @requested_at, @confirmed_by, @proposed_at, @state, @decided_at, '', @mac, @changes
);

-- name: ConfirmPolicyActivation :execrows
UPDATE policy_activations SET
    state = 'proposed', confirmed_by = @confirmed_by, proposed_at = @proposed_at::TIMESTAMPTZ, mac = @mac, changes = @changes
WHERE activation_id = @activation_id AND state = 'waiting';

-- name: DecidePolicyActivation :execrows
UPDATE policy_activations SET state = @state, decided_at = @decided_at::TIMESTAMPTZ, detail = @detail
WHERE activation_id = @activation_id AND state = 'proposed';

-- name: FinishPolicyActivation :execrows
UPDATE policy_activations SET state = 'done', decided_at = @decided_at::TIMESTAMPTZ, detail = @detail, mac = @mac
WHERE activation_id = @activation_id AND state = 'proposed';

-- name: PolicyActivationMACs :many
SELECT activation_id, mac FROM policy_activations ORDER BY activation_id;

-- name: ResealPolicyActivation :execrows
UPDATE policy_activations SET mac = @becomes WHERE activation_id = @activation_id AND mac = @was;

-- name: WithdrawWaitingPolicies :many
-- What waits for another operator to replace a version that is no longer in force.
UPDATE policy_activations SET state = 'withdrawn', decided_at = @decided_at::TIMESTAMPTZ, detail = @detail
WHERE state = 'waiting' AND replaces <> @head
RETURNING version;

-- name: AnswerPolicy :exec
INSERT INTO policy_answers (activation_id, replica_id, compiled, reason, answered_at)
VALUES (@activation_id, @replica_id, @compiled, @reason, @answered_at)
ON CONFLICT (activation_id, replica_id) DO NOTHING;

-- name: PolicyAnswers :many
SELECT activation_id, replica_id, compiled, reason, answered_at FROM policy_answers
WHERE activation_id = @activation_id
ORDER BY replica_id;
