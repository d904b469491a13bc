-- name: OpenLines :many
SELECT account_id, payment, line_id, amount, currency, at, paid, reversed_at, differs, data, imported_at, state, movement_id, operator, reason
FROM statement_lines
WHERE account_id = @account_id AND state IN ('new', 'matched') AND payment > @after
ORDER BY payment
LIMIT @most;

-- name: LineByPayment :one
SELECT account_id, payment, line_id, amount, currency, at, paid, reversed_at, differs, data, imported_at, state, movement_id, operator, reason
FROM statement_lines
WHERE account_id = @account_id AND payment = @payment;

-- name: LinesNamed :many
SELECT account_id, payment, line_id, amount, currency, at, paid, reversed_at, differs, data, imported_at, state, movement_id, operator, reason
FROM statement_lines
WHERE account_id = @account_id AND payment = ANY(@payments::TEXT[]);

-- name: ListLines :many
-- Payments that wait for an operator, the newest first, before a time, and of those at that
-- very time the ones before a payment of an account. Each account gives a page at most.
SELECT b.merchant_id, b.mode, b.provider, s.account_id, s.payment, s.line_id, s.amount, s.currency, s.at, s.state, s.data
FROM statements AS b
CROSS JOIN LATERAL (
    SELECT l.account_id, l.payment, l.line_id, l.amount, l.currency, l.at, l.state, l.data FROM statement_lines AS l
    WHERE l.account_id = b.account_id AND l.state IN ('unmatched', 'ambiguous', 'again') AND l.at <= @until
        AND (l.at < @until OR (l.account_id, l.payment) < (@account_id, @payment::TEXT))
    ORDER BY l.at DESC, l.payment DESC
    LIMIT @most
) AS s
WHERE b.merchant_id = @merchant_id
ORDER BY s.at DESC, s.account_id DESC, s.payment DESC
LIMIT @most;

-- name: Candidates :many
-- The collections at a provider, made in a span of time, that payments of some
-- amounts may be for, with the account of each. Each amount is looked up by the index. A
-- collection with late money has had its payment, also where an operator has assigned
-- that payment to another.
SELECT m.id, m.amount, m.state, m.created_at, m.expires_at, m.connection_account,
    (m.paid_late_at IS NOT NULL OR EXISTS (SELECT 1 FROM statement_lines AS s WHERE s.movement_id = m.id))::BOOL AS taken
FROM (SELECT unnest(@amounts::INT8[]) AS amount) AS a
CROSS JOIN LATERAL (
    SELECT c.id, c.amount, c.state, c.created_at, c.expires_at, c.connection_account, c.paid_late_at FROM movements AS c
    WHERE c.merchant_id = @merchant_id AND c.mode = @mode AND c.kind = 'collection' AND c.amount = a.amount
        AND c.provider = @provider AND c.state <> 'not_submitted'
        AND c.created_at >= @earliest AND c.created_at <= @latest
    OFFSET 0
) AS m;

-- name: CloseLines :one
-- Closes payments that were applied to their collections, and has the amounts that they
-- paid free sooner than unpaid ones. A payment that has changed meanwhile stays open:
-- seen says by its name how each stood, and which collection it had.
WITH closed AS (
    UPDATE statement_lines SET state = CASE WHEN reversed_at IS NOT NULL AND NOT differs THEN 'reversed' ELSE 'paid' END
    WHERE statement_lines.account_id = @account_id AND payment = ANY(@payments::TEXT[]) AND state = 'matched'
        AND statement_lines.movement_id::TEXT || CASE WHEN reversed_at IS NULL THEN ' stays' ELSE ' reversed' END || CASE WHEN differs THEN ', differs' ELSE '' END
            = @seen::JSONB ->> payment
    RETURNING statement_lines.amount, statement_lines.movement_id
), freed AS (
    UPDATE reserved_amounts SET free_at = @free_at::TIMESTAMPTZ
    FROM closed
    WHERE reserved_amounts.account_id = @account_id AND reserved_amounts.amount = closed.amount
        AND reserved_amounts.movement_id = closed.movement_id
        AND reserved_amounts.taken_at < @free_at::TIMESTAMPTZ AND reserved_amounts.free_at > @free_at::TIMESTAMPTZ
    RETURNING reserved_amounts.amount
)
SELECT COUNT(*) FROM closed;
