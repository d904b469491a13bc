-- name: DecisionOf :one
SELECT movement_id, attempt, operator, outcome, reason, at, alone, confirmed_by, confirmed_reason, confirmed_at FROM decisions
WHERE movement_id = @movement_id AND attempt = @attempt;

-- name: DecisionsOf :many
SELECT movement_id, attempt, operator, outcome, reason, at, alone, confirmed_by, confirmed_reason, confirmed_at FROM decisions
WHERE movement_id = @movement_id
ORDER BY attempt;

-- name: PutDecision :execrows
-- Proposes, or decides alone. What is made already stays.
INSERT INTO decisions (movement_id, attempt, operator, outcome, reason, at, alone)
VALUES (@movement_id, @attempt, @operator, @outcome, @reason, @at, @alone)
ON CONFLICT (movement_id, attempt) DO UPDATE SET
    operator = excluded.operator, outcome = excluded.outcome, reason = excluded.reason, at = excluded.at, alone = excluded.alone
WHERE decisions.confirmed_by IS NULL AND NOT decisions.alone;

-- name: ConfirmDecision :execrows
UPDATE decisions SET confirmed_by = @operator::TEXT, confirmed_reason = @reason::TEXT, confirmed_at = @at::TIMESTAMPTZ
WHERE movement_id = @movement_id AND attempt = @attempt AND outcome = @outcome AND operator <> @operator::TEXT
    AND confirmed_by IS NULL AND NOT alone;

-- name: AttentionOf :many
SELECT merchant_id, mode, subject, reason, fact_id, provider, detail, at, resolved_at, resolved_by, resolution FROM attention
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject
ORDER BY at, reason, fact_id;

-- name: SettleAttention :exec
UPDATE attention SET resolved_at = @now::TIMESTAMPTZ, resolved_by = @operator::TEXT, resolution = @resolution::TEXT
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = ANY(@reasons::TEXT[]) AND resolved_at IS NULL;
