-- name: Balance :one
SELECT available, held FROM ledger_balances
WHERE merchant_id = @merchant_id AND mode = @mode;

-- name: OpenBalance :exec
-- Gives a merchant the row that its balance is kept in.
INSERT INTO ledger_balances (merchant_id, mode, available, held)
SELECT merchants.merchant_id, @mode::TEXT, 0, 0 FROM merchants
WHERE merchants.merchant_id = @merchant_id::TEXT AND merchants.merchant_id <> 'platform'
ON CONFLICT (merchant_id, mode) DO NOTHING;

-- name: PutAdjustment :one
-- Writes an adjustment with its audit entry, and its posting unless it has to
-- wait. No row comes back when the reference is taken, the merchant has no
-- balance, or too little.
WITH put AS (
    INSERT INTO ledger_adjustments (merchant_id, mode, reference, id, amount, reason, state, requested_by, requested_at)
    SELECT b.merchant_id, b.mode, @reference::TEXT, @id::UUID, @amount::INT8, @reason::TEXT, @state::TEXT, @operator::TEXT, @now::TIMESTAMPTZ
    FROM ledger_balances AS b
    WHERE b.merchant_id = @merchant_id::TEXT AND b.mode = @mode::TEXT AND (@state::TEXT <> 'posted' OR b.available + @amount::INT8 >= 0)
    ON CONFLICT (merchant_id, mode, reference) DO NOTHING
    RETURNING ledger_adjustments.merchant_id, ledger_adjustments.mode, ledger_adjustments.id, ledger_adjustments.amount, ledger_adjustments.state
), changed AS (
    UPDATE ledger_balances SET available = ledger_balances.available + put.amount
    FROM put
    WHERE ledger_balances.merchant_id = put.merchant_id AND ledger_balances.mode = put.mode AND put.state = 'posted'
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT put.merchant_id, put.mode, put.id, 0, 1, CASE WHEN put.amount < 0 THEN 'debit' ELSE 'credit' END, '', @now::TIMESTAMPTZ,
        put.amount, 0, 0, 0, 0, -put.amount
    FROM put WHERE put.state = 'posted'
    RETURNING subject
), noted AS (
    INSERT INTO audit (audit_id, merchant_id, at, operator, action, detail)
    SELECT @audit_id::UUID, put.merchant_id, @now::TIMESTAMPTZ, @operator::TEXT, @action::TEXT, @detail::TEXT FROM put
    RETURNING audit_id
)
SELECT put.id FROM put;

-- name: DecideAdjustment :one
-- Ends the waiting of an adjustment, by another operator than the one who
-- requested it. No row comes back when it does not wait, that operator decides, or
-- the balance is too small.
WITH decided AS (
    UPDATE ledger_adjustments SET state = @state::TEXT, decided_by = @operator::TEXT, decided_at = @now::TIMESTAMPTZ
    FROM ledger_balances AS b
    WHERE ledger_adjustments.merchant_id = @merchant_id::TEXT AND ledger_adjustments.mode = @mode::TEXT
        AND ledger_adjustments.reference = @reference::TEXT
        AND ledger_adjustments.state = 'waiting' AND ledger_adjustments.requested_by <> @operator::TEXT
        AND b.merchant_id = @merchant_id::TEXT AND b.mode = @mode::TEXT
        AND (@state::TEXT <> 'posted' OR b.available + ledger_adjustments.amount >= 0)
    RETURNING ledger_adjustments.merchant_id, ledger_adjustments.mode, ledger_adjustments.id, ledger_adjustments.amount, ledger_adjustments.state
), changed AS (
    UPDATE ledger_balances SET available = ledger_balances.available + decided.amount
    FROM decided
    WHERE ledger_balances.merchant_id = decided.merchant_id AND ledger_balances.mode = decided.mode AND decided.state = 'posted'
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT decided.merchant_id, decided.mode, decided.id, 0, 1, CASE WHEN decided.amount < 0 THEN 'debit' ELSE 'credit' END, '',
        @now::TIMESTAMPTZ, decided.amount, 0, 0, 0, 0, -decided.amount
    FROM decided WHERE decided.state = 'posted'
    RETURNING subject
), noted AS (
    INSERT INTO audit (audit_id, merchant_id, at, operator, action, detail)
    SELECT @audit_id::UUID, decided.merchant_id, @now::TIMESTAMPTZ, @operator::TEXT, @action::TEXT, @detail::TEXT FROM decided
    RETURNING audit_id
)
SELECT decided.id FROM decided;

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
