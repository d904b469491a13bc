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

-- name: SnapshotBefore :one
-- What an account came to at the end of the last day that ended by a time.
SELECT s.until, SUM(s.available)::INT8 AS available, SUM(s.held)::INT8 AS held FROM ledger_snapshots AS s
WHERE s.merchant_id = @merchant_id AND s.mode = @mode AND s.until <= @before
GROUP BY s.until
ORDER BY s.until DESC
LIMIT 1;

-- name: BalanceSince :one
-- What came to an account after a snapshot and before a time, and what of before the
-- snapshot was written too late for it.
SELECT COALESCE(SUM(parts.available), 0)::INT8 AS available, COALESCE(SUM(parts.held), 0)::INT8 AS held
FROM (
    SELECT t.available, t.held FROM ledger_transactions AS t
    WHERE t.merchant_id = @merchant_id AND t.mode = @mode AND t.at >= @since::TIMESTAMPTZ AND t.at < @before::TIMESTAMPTZ
    UNION ALL
    SELECT t.available, t.held FROM ledger_transactions AS t
    WHERE t.merchant_id = @merchant_id AND t.mode = @mode AND t.at < @since::TIMESTAMPTZ AND t.written_at - t.at > INTERVAL '1 hour'
) AS parts;

-- name: PlatformAt :many
-- Account by account: the last snapshot by a time, what came since, and what was
-- written too late for it.
SELECT parts.provider, SUM(parts.margin)::INT8 AS margin, SUM(parts.cost)::INT8 AS cost, SUM(parts.deposit)::INT8 AS deposit,
    SUM(parts.adjustments)::INT8 AS adjustments
FROM (
    SELECT b.merchant_id, b.mode, COALESCE((
        SELECT MAX(s.until) FROM ledger_snapshots AS s
        WHERE s.merchant_id = b.merchant_id AND s.mode = b.mode AND s.until <= @before
    ), TIMESTAMPTZ '0001-01-01 00:00:00Z') AS since
    FROM ledger_balances AS b
    WHERE b.mode = @mode
) AS accounts
JOIN LATERAL (
    SELECT s.provider, s.margin, s.cost, s.deposit, s.adjustments FROM ledger_snapshots AS s
    WHERE s.merchant_id = accounts.merchant_id AND s.mode = accounts.mode AND s.until = accounts.since
    UNION ALL
    (SELECT t.provider, SUM(t.margin), SUM(t.cost), SUM(t.deposit), SUM(t.adjustments) FROM ledger_transactions AS t
    WHERE t.merchant_id = accounts.merchant_id AND t.mode = accounts.mode AND t.at >= accounts.since AND t.at < @before
    GROUP BY t.provider)
    UNION ALL
    (SELECT t.provider, SUM(t.margin), SUM(t.cost), SUM(t.deposit), SUM(t.adjustments) FROM ledger_transactions AS t
    WHERE t.merchant_id = accounts.merchant_id AND t.mode = accounts.mode AND t.at < accounts.since AND t.written_at - t.at > INTERVAL '1 hour'
    GROUP BY t.provider)
) AS parts ON TRUE
GROUP BY parts.provider
ORDER BY parts.provider;

-- name: UnclosedDays :many
-- Of a page of accounts, the last snapshot and the first transaction after it that is
-- of a day that can be closed.
SELECT accounts.merchant_id, accounts.mode, accounts.since::TIMESTAMPTZ AS since, COALESCE((
        SELECT MIN(t.at) FROM ledger_transactions AS t
        WHERE t.merchant_id = accounts.merchant_id AND t.mode = accounts.mode AND t.at >= accounts.since AND t.at < @closed
            AND (t.written_at - t.at > INTERVAL '1 hour') IS NOT TRUE
    ), TIMESTAMPTZ '0001-01-01 00:00:00Z')::TIMESTAMPTZ AS unclosed
FROM (
    SELECT b.merchant_id, b.mode, COALESCE((
        SELECT MAX(s.until) FROM ledger_snapshots AS s WHERE s.merchant_id = b.merchant_id AND s.mode = b.mode
    ), TIMESTAMPTZ '0001-01-01 00:00:00Z') AS since
    FROM ledger_balances AS b
    WHERE (b.merchant_id, b.mode) > (@after_merchant::TEXT, @after_mode::TEXT)
    ORDER BY b.merchant_id, b.mode
    LIMIT @most
) AS accounts
ORDER BY accounts.merchant_id, accounts.mode;

-- name: CloseDay :execrows
-- Adds up an account's snapshot of a day: the one before it, and what came since. The
-- database's own clock says that the day is closed.
INSERT INTO ledger_snapshots (merchant_id, mode, until, provider, transactions, available, held, margin, cost, deposit, adjustments)
SELECT @merchant_id::TEXT, @mode::TEXT, @until::TIMESTAMPTZ, parts.provider, SUM(parts.transactions)::INT8, SUM(parts.available)::INT8,
    SUM(parts.held)::INT8, SUM(parts.margin)::INT8, SUM(parts.cost)::INT8, SUM(parts.deposit)::INT8, SUM(parts.adjustments)::INT8
FROM (
    SELECT s.provider, s.transactions, s.available, s.held, s.margin, s.cost, s.deposit, s.adjustments FROM ledger_snapshots AS s
    WHERE s.merchant_id = @merchant_id AND s.mode = @mode AND s.until = @since
    UNION ALL
    SELECT t.provider, 1, t.available, t.held, t.margin, t.cost, t.deposit, t.adjustments FROM ledger_transactions AS t
    WHERE t.merchant_id = @merchant_id AND t.mode = @mode AND t.at >= @since AND t.at < @until
        AND (t.written_at - t.at > INTERVAL '1 hour') IS NOT TRUE
) AS parts
WHERE @until::TIMESTAMPTZ <= CLOCK_TIMESTAMP() - INTERVAL '2 hours'
GROUP BY parts.provider
ON CONFLICT (merchant_id, mode, until, provider) DO NOTHING;

-- name: AccountStatement :many
-- Transactions of one time follow each other as they did for their subject. The time of
-- the last one of the page is found first, in the order of the index: a plan for any span
-- would else sort all of a busy account's.
SELECT t.subject, t.attempt, t.step, t.kind, t.provider, t.at, t.available, t.held, t.margin, t.cost, t.deposit, t.adjustments,
    COALESCE(m.reference, a.reference, '')::TEXT AS reference
FROM ledger_transactions AS t
LEFT JOIN movements AS m ON m.id = t.subject
LEFT JOIN ledger_adjustments AS a ON a.merchant_id = t.merchant_id AND a.mode = t.mode AND a.id = t.subject
WHERE t.merchant_id = @merchant_id AND t.mode = @mode AND t.at >= @since::TIMESTAMPTZ AND t.at < @before::TIMESTAMPTZ
    AND (t.at, t.subject, t.attempt, t.step) > (@after_at::TIMESTAMPTZ, @after_subject::UUID, @after_attempt::INT4, @after_step::INT2)
    AND t.at <= COALESCE((
        SELECT l.at FROM ledger_transactions AS l
        WHERE l.merchant_id = @merchant_id AND l.mode = @mode AND l.at >= @since::TIMESTAMPTZ AND l.at < @before::TIMESTAMPTZ
            AND (l.at, l.subject, l.attempt, l.step) > (@after_at::TIMESTAMPTZ, @after_subject::UUID, @after_attempt::INT4, @after_step::INT2)
        ORDER BY l.at
        LIMIT 1 OFFSET @before_last
    ), @before::TIMESTAMPTZ)
ORDER BY t.at, t.subject, t.attempt, t.step
LIMIT @most;

-- name: AdjustmentsByReference :many
-- Reads all adjustments, which people have made one by one.
SELECT merchant_id, mode, reference, id, amount, reason, state, requested_by, requested_at, decided_by, decided_at FROM ledger_adjustments
WHERE reference = @reference
ORDER BY requested_at DESC, merchant_id, mode
LIMIT @most;
