-- name: ClaimedAlone :one
-- How often an operator has claimed money of a merchant alone, and how much since a time:
-- credits and debits together, overrides and assignments.
SELECT
    COALESCE((
        SELECT a.times FROM adjusted_alone AS a
        WHERE a.requested_by = @operator AND a.merchant_id = @merchant_id AND a.mode = @mode
    ), 0)::INT8 AS times,
    (COALESCE((
        SELECT SUM(ABS(a.amount)) FROM ledger_adjustments AS a
        WHERE a.merchant_id = @merchant_id AND a.mode = @mode AND a.requested_by = @operator AND a.requested_at > @since::TIMESTAMPTZ
            AND a.state = 'posted' AND a.decided_by IS NULL
    ), 0) + COALESCE((
        SELECT SUM(c.amount) FROM claims AS c
        WHERE c.merchant_id = @merchant_id AND c.mode = @mode AND c.operator = @operator AND c.at > @since::TIMESTAMPTZ AND c.alone
    ), 0))::INT8 AS amount;

-- name: ConfirmClaim :execrows
UPDATE claims SET confirmed_by = @operator::TEXT, confirmed_at = @at::TIMESTAMPTZ
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND operator <> @operator::TEXT
    AND amount = @amount AND confirmed_by IS NULL AND NOT alone;

-- name: Claim :one
SELECT merchant_id, mode, subject, movement_id, payment, operator, amount, reason, at, alone, confirmed_by, confirmed_at FROM claims
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject;

-- name: WaitingClaims :many
-- Assignments that another operator has not confirmed, of payments that are not the
-- collection's yet. A row is a person's word, so the table is read whole.
SELECT c.merchant_id, c.mode, c.subject, c.movement_id, c.payment, c.operator, c.amount, c.reason, c.at FROM claims AS c
WHERE NOT c.alone AND c.confirmed_by IS NULL
    AND NOT EXISTS (SELECT 1 FROM statement_lines AS l WHERE l.movement_id = c.movement_id AND l.payment = c.payment)
ORDER BY c.at DESC, c.subject
LIMIT @most;
