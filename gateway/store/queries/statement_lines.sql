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
-- Payments that wait for an operator, the newest first.
SELECT b.merchant_id, b.mode, b.provider, s.account_id, s.payment, s.line_id, s.amount, s.currency, s.at, s.state, s.data
FROM statement_lines AS s
JOIN statements AS b ON b.account_id = s.account_id
WHERE b.merchant_id = @merchant_id AND s.state IN ('unmatched', 'ambiguous', 'again')
ORDER BY s.at DESC
LIMIT @most;

-- name: Candidates :many
-- The collections at a provider, made in a span of time, that payments of some
-- amounts may be for, with the account of each. A collection with late money has had its payment, also where
-- an operator has assigned that payment to another.
SELECT m.id, m.amount, m.state, m.created_at, m.expires_at, m.connection_account,
    (m.paid_late_at IS NOT NULL OR EXISTS (SELECT 1 FROM statement_lines AS s WHERE s.movement_id = m.id))::BOOL AS taken
FROM movements AS m
WHERE m.merchant_id = @merchant_id AND m.mode = @mode AND m.kind = 'collection' AND m.amount = ANY(@amounts::INT8[])
    AND m.provider = @provider AND m.state IN ('submitting', 'acknowledged', 'pending', 'succeeded', 'expired')
    AND m.created_at >= @earliest AND m.created_at <= @latest;

-- name: MatchLines :many
-- Writes the matches of new payments, and an exception for each that needs a person.
-- The matches are one document by the payments' names: joined to an array, a page
-- costs its square wherever the planner takes the open payments for few.
WITH matched AS (
    UPDATE statement_lines SET
        state = (@matches::JSONB -> statement_lines.payment) ->> 'state',
        movement_id = ((@matches::JSONB -> statement_lines.payment) ->> 'movement')::UUID
    WHERE statement_lines.account_id = @account_id AND statement_lines.payment = ANY(@payments::TEXT[]) AND statement_lines.state = 'new'
    RETURNING statement_lines.payment, statement_lines.line_id
), listed AS (
    INSERT INTO exceptions (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
    SELECT @merchant_id::TEXT, @mode::TEXT, 'payment ' || matched.payment, (@matches::JSONB -> matched.payment) ->> 'reason', matched.line_id,
        @provider::TEXT, (@matches::JSONB -> matched.payment) ->> 'detail', @now::TIMESTAMPTZ
    FROM matched WHERE (@matches::JSONB -> matched.payment) ->> 'reason' <> ''
    ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING
    RETURNING subject
)
SELECT matched.payment FROM matched;

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

-- name: AssignLine :one
-- Assigns a payment to a collection by an operator's word, if it still stands where
-- the operator saw it, and writes so into the history of the collection that had it.
WITH assigned AS (
    UPDATE statement_lines SET state = 'matched', movement_id = @movement_id::UUID, operator = @operator, reason = @reason
    WHERE account_id = @account_id AND payment = @payment AND state = @from_state::TEXT AND reversed_at IS NULL AND paid
        AND (movement_id = sqlc.narg(from_movement)::UUID OR movement_id IS NULL AND sqlc.narg(from_movement)::UUID IS NULL)
    RETURNING payment
), lost AS (
    UPDATE movements SET sequence = movements.sequence + 1
    FROM assigned
    WHERE movements.id = sqlc.narg(from_movement)::UUID
    RETURNING movements.id, movements.sequence
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT lost.id, lost.sequence, 'given_away', @now, @detail::TEXT FROM lost
    RETURNING movement_id
)
SELECT assigned.payment FROM assigned;
