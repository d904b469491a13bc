-- name: OverrideOf :one
SELECT movement_id, attempt, operator, outcome, reason, at, alone, confirmed_by, confirmed_reason, confirmed_at FROM overrides
WHERE movement_id = @movement_id AND attempt = @attempt;

-- name: OverridesOf :many
SELECT movement_id, attempt, operator, outcome, reason, at, alone, confirmed_by, confirmed_reason, confirmed_at FROM overrides
WHERE movement_id = @movement_id
ORDER BY attempt;

-- name: PutOverride :execrows
-- Proposes, or decides alone. A decision that is made stays, but for one to send a
-- movement again: the caller says that it is over.
INSERT INTO overrides (movement_id, attempt, operator, outcome, reason, at, alone)
VALUES (@movement_id, @attempt, @operator, @outcome, @reason, @at, @alone)
ON CONFLICT (movement_id, attempt) DO UPDATE SET
    operator = excluded.operator, outcome = excluded.outcome, reason = excluded.reason, at = excluded.at, alone = excluded.alone,
    confirmed_by = NULL, confirmed_reason = NULL, confirmed_at = NULL
WHERE overrides.confirmed_by IS NULL AND NOT overrides.alone OR overrides.outcome = 'resubmit';

-- name: ConfirmOverride :execrows
UPDATE overrides SET confirmed_by = @operator::TEXT, confirmed_reason = @reason::TEXT, confirmed_at = @at::TIMESTAMPTZ
WHERE movement_id = @movement_id AND attempt = @attempt AND outcome = @outcome AND operator <> @operator::TEXT
    AND confirmed_by IS NULL AND NOT alone;

-- name: PollDecided :exec
-- Has a movement polled soon that operators have decided. The version keeps a poll from
-- putting that off that began before they did.
UPDATE polls SET due = LEAST(due, @due::TIMESTAMPTZ), version = version + 1 WHERE movement_id = @movement_id AND attempt = @attempt;

-- name: WaitingOverrides :many
-- Proposals that another operator has not confirmed, of movements that are still open. The
-- table has a row for each word of a person's, so it is read whole.
SELECT sqlc.embed(m), o.operator, o.outcome, o.reason, o.at
FROM overrides AS o JOIN movements AS m ON m.id = o.movement_id AND m.attempt = o.attempt
WHERE o.confirmed_by IS NULL AND NOT o.alone AND m.state IN ('submitting', 'acknowledged', 'pending')
ORDER BY o.at DESC
LIMIT @most;
