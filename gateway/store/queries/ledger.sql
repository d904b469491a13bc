-- name: Balance :one
SELECT available, held FROM ledger_balances
WHERE merchant_id = @merchant_id AND mode = @mode;

-- name: OpenBalance :exec
-- Gives a merchant the row that its balance is kept in.
INSERT INTO ledger_balances (merchant_id, mode, available, held)
SELECT merchants.merchant_id, @mode::TEXT, 0, 0 FROM merchants
WHERE merchants.merchant_id = @merchant_id::TEXT AND merchants.merchant_id <> 'platform'
ON CONFLICT (merchant_id, mode) DO NOTHING;

-- name: Adjustment :one
SELECT merchant_id, mode, reference, id, amount, reason, state, requested_by, requested_at, decided_by, decided_at FROM ledger_adjustments
WHERE merchant_id = @merchant_id AND mode = @mode AND reference = @reference;

-- name: Adjustments :many
SELECT merchant_id, mode, reference, id, amount, reason, state, requested_by, requested_at, decided_by, decided_at FROM ledger_adjustments
WHERE @state::TEXT = '' OR state = @state
ORDER BY requested_at DESC, merchant_id, mode, reference
LIMIT @most;

-- name: BalanceAt :one
SELECT COALESCE(SUM(available), 0)::INT8 AS available, COALESCE(SUM(held), 0)::INT8 AS held FROM ledger_transactions
WHERE merchant_id = @merchant_id AND mode = @mode AND at <= @at;

-- name: PlatformAt :many
SELECT provider, COALESCE(SUM(margin), 0)::INT8 AS margin, COALESCE(SUM(cost), 0)::INT8 AS cost,
    COALESCE(SUM(deposit), 0)::INT8 AS deposit, COALESCE(SUM(adjustments), 0)::INT8 AS adjustments
FROM ledger_transactions
WHERE mode = @mode AND at <= @at
GROUP BY provider
ORDER BY provider;

-- name: AccountStatement :many
-- Transactions of one time follow each other as they did for their subject.
SELECT t.subject, t.attempt, t.step, t.kind, t.provider, t.at, t.available, t.held, t.margin, t.cost, t.deposit, t.adjustments,
    COALESCE(m.reference, a.reference, '')::TEXT AS reference
FROM ledger_transactions AS t
LEFT JOIN movements AS m ON m.id = t.subject
LEFT JOIN ledger_adjustments AS a ON a.merchant_id = t.merchant_id AND a.mode = t.mode AND a.id = t.subject
WHERE t.merchant_id = @merchant_id AND t.mode = @mode AND t.at >= @since AND t.at < @before
    AND (t.at, t.subject, t.attempt, t.step) > (@after_at::TIMESTAMPTZ, @after_subject::UUID, @after_attempt::INT4, @after_step::INT2)
ORDER BY t.at, t.subject, t.attempt, t.step
LIMIT @most;
