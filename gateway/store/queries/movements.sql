-- name: ClaimMovement :one
-- Claims a reference that nothing is paid for from a balance: a new row, or a row
-- whose last attempt was proven never sent, of which nothing may reach the next.
-- The next is the attempt that the caller names, or the next number. No row comes
-- back when the reference is taken, or that number was passed.
INSERT INTO movements (
    merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
    amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
    send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account
)
VALUES (
    @merchant_id, @mode, @kind, @reference, @id, 1, @operation, @provider, 'sending', 1,
    @amount, @request, @connection_version, '', '', @callback_url, @request_id, @policy_version, @decision_id,
    @send_by, @now, @now, 0, @due_bucket, @due_at, @cost, '', sqlc.narg(quote), @connection_owner, @connection_account
)
ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
    attempt = GREATEST(movements.attempt + 1, @attempt::INT4), operation = excluded.operation, provider = excluded.provider,
    state = 'sending', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
    connection_version = excluded.connection_version,
    callback_url = excluded.callback_url, request_id = excluded.request_id,
    policy_version = excluded.policy_version, decision_id = excluded.decision_id,
    send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
    result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
    asked_at = NULL, misses = 0, due_at = excluded.due_at,
    cost = excluded.cost, charge = excluded.charge, quote = excluded.quote,
    connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
WHERE movements.state = 'unsent' AND (@attempt::INT4 = 0 OR movements.attempt < @attempt::INT4)
RETURNING id, attempt, sequence;

-- name: ClaimPaid :one
-- Claims a reference as ClaimMovement does and takes its price from the balance.
-- No row comes back either when the balance is too small. What two replicas take
-- at once from a balance seen large enough by both, the constraint on the balance
-- refuses, and with it the whole statement. It is a statement of its own because
-- what touches no balance must not pay for the ledger's part.
WITH claimed AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'sending', 1,
        @amount::INT8, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, @cost::INT8, @charge::TEXT, sqlc.narg(quote)::TEXT, @connection_owner::TEXT, @connection_account::TEXT
    WHERE EXISTS (
        SELECT 1 FROM ledger_balances AS b
        WHERE b.merchant_id = @merchant_id::TEXT AND b.mode = @mode::TEXT AND b.available >= @amount::INT8
    )
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = GREATEST(movements.attempt + 1, @attempt::INT4), operation = excluded.operation, provider = excluded.provider,
        state = 'sending', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
        asked_at = NULL, misses = 0, due_at = excluded.due_at,
        cost = excluded.cost, charge = excluded.charge, quote = excluded.quote,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
    WHERE movements.state = 'unsent' AND (@attempt::INT4 = 0 OR movements.attempt < @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.provider
), taken AS (
    UPDATE ledger_balances SET available = ledger_balances.available + @posted_available::INT8, held = ledger_balances.held + @posted_held::INT8
    FROM claimed
    WHERE ledger_balances.merchant_id = claimed.merchant_id AND ledger_balances.mode = claimed.mode
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT claimed.merchant_id, claimed.mode, claimed.id, claimed.attempt, 1, @posted_kind::TEXT, claimed.provider, @now::TIMESTAMPTZ,
        @posted_available::INT8, @posted_held::INT8, @posted_margin::INT8, 0, 0, 0
    FROM claimed
    RETURNING subject
)
SELECT claimed.id, claimed.attempt, claimed.sequence FROM claimed;

-- name: MoveMovement :one
-- Changes the state of a movement, if it still stands where the caller saw it,
-- and writes the event of its story in the same statement. What a merchant was
-- answered as pending, or where the caller says so what was asked about, is never
-- unsent. What was charged can't end here.
WITH moved AS (
    UPDATE movements SET
        state = @to_state, sequence = movements.sequence + 1, updated_at = @now, misses = 0,
        result = COALESCE(sqlc.narg(result), movements.result),
        answer = COALESCE(sqlc.narg(answer), movements.answer),
        refusal = COALESCE(sqlc.narg(refusal), movements.refusal),
        provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
        fact_id = COALESCE(NULLIF(@fact_id::TEXT, ''), fact_id),
        expires_at = COALESCE(sqlc.narg(expires_at), expires_at),
        cost = COALESCE(NULLIF(@cost::INT8, 0), movements.cost),
        paid_at = COALESCE(sqlc.narg(paid_at), movements.paid_at),
        due_at = sqlc.narg(due_at)
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = @from_state
        AND (@to_state <> 'unsent' OR movements.answer IS NULL)
        AND (movements.asked_at IS NULL OR movements.asked_at <= @asked_before::TIMESTAMPTZ)
        AND (movements.charge = '' OR @to_state = 'pending')
    RETURNING movements.id, movements.sequence, movements.updated_at, movements.merchant_id, movements.mode, movements.reference
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT moved.id, moved.sequence, @event::TEXT, @now, @detail::TEXT FROM moved
    RETURNING movement_id
), told AS (
    INSERT INTO callbacks (
        merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts,
        created_at, due_bucket, due_at
    )
    SELECT moved.merchant_id, moved.mode, @callback_id::UUID, moved.id, moved.sequence, @callback_event::TEXT, moved.reference, @callback_url::TEXT,
        @callback_body::TEXT, @callback_state::TEXT, 0, @now, @callback_bucket::INT4, sqlc.narg(callback_due_at)
    FROM moved WHERE @callback_event::TEXT <> ''
    RETURNING event_id
), mailed AS (
    INSERT INTO mails (mail_id, merchant_id, mode, movement_id, recipient, subject, body, state, created_at, due_bucket, due_at)
    SELECT @mail_id::UUID, moved.merchant_id, moved.mode, moved.id, @mail_recipient::TEXT, @mail_subject::TEXT, @mail_body::TEXT, 'waiting',
        @now, @mail_bucket::INT4, @now
    FROM moved WHERE @mail_recipient::TEXT <> ''
    RETURNING mail_id
)
SELECT moved.sequence, moved.updated_at FROM moved;

-- name: MovePaid :one
-- Changes the state of a movement as MoveMovement does, and posts what follows.
WITH moved AS (
    UPDATE movements SET
        state = @to_state, sequence = movements.sequence + 1, updated_at = @now, misses = 0,
        result = COALESCE(sqlc.narg(result), movements.result),
        answer = COALESCE(sqlc.narg(answer), movements.answer),
        refusal = COALESCE(sqlc.narg(refusal), movements.refusal),
        provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
        fact_id = COALESCE(NULLIF(@fact_id::TEXT, ''), fact_id),
        expires_at = COALESCE(sqlc.narg(expires_at), expires_at),
        cost = COALESCE(NULLIF(@cost::INT8, 0), movements.cost),
        due_at = sqlc.narg(due_at)
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = @from_state
        AND (@to_state <> 'unsent' OR movements.answer IS NULL)
        AND (movements.asked_at IS NULL OR movements.asked_at <= @asked_before::TIMESTAMPTZ)
        AND movements.charge <> ''
    RETURNING movements.id, movements.attempt, movements.sequence, movements.updated_at, movements.merchant_id, movements.mode,
        movements.reference, movements.provider
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT moved.id, moved.sequence, @event::TEXT, @now, @detail::TEXT FROM moved
    RETURNING movement_id
), told AS (
    INSERT INTO callbacks (
        merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts,
        created_at, due_bucket, due_at
    )
    SELECT moved.merchant_id, moved.mode, @callback_id::UUID, moved.id, moved.sequence, @callback_event::TEXT, moved.reference, @callback_url::TEXT,
        @callback_body::TEXT, @callback_state::TEXT, 0, @now, @callback_bucket::INT4, sqlc.narg(callback_due_at)
    FROM moved WHERE @callback_event::TEXT <> ''
    RETURNING event_id
), paid AS (
    UPDATE ledger_balances SET available = ledger_balances.available + @posted_available::INT8, held = ledger_balances.held + @posted_held::INT8
    FROM moved
    WHERE ledger_balances.merchant_id = moved.merchant_id AND ledger_balances.mode = moved.mode
        AND (@posted_available::INT8 <> 0 OR @posted_held::INT8 <> 0)
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT moved.merchant_id, moved.mode, moved.id, moved.attempt, 2, @posted_kind::TEXT, moved.provider, @now,
        @posted_available::INT8, @posted_held::INT8, @posted_margin::INT8, @posted_cost::INT8, @posted_deposit::INT8, 0
    FROM moved
    RETURNING subject
)
SELECT moved.sequence, moved.updated_at FROM moved;

-- name: RecordFact :one
-- Records a fact about a movement that has ended, once, and its posting: money
-- that came after it had ended without it, or that the provider took back, that
-- or a success. The state stays; a second fact of the same sort is the operators' list's
-- alone. The reversal of what was charged without a posting is refused by the
-- constraint on kinds.
WITH marked AS (
    UPDATE movements SET sequence = movements.sequence + 1, updated_at = @now, due_at = NULL,
        paid_late_at = CASE WHEN @event::TEXT = 'paid_late' THEN @at ELSE movements.paid_late_at END,
        reversed_at = CASE WHEN @event::TEXT = 'reversed' THEN @at ELSE movements.reversed_at END
    WHERE movements.id = @id AND (
        @event::TEXT = 'paid_late' AND movements.state IN ('expired', 'failed') AND movements.paid_late_at IS NULL
        OR @event::TEXT = 'reversed' AND (
            movements.state = 'done' OR movements.kind = 'collection' AND movements.paid_late_at IS NOT NULL
        ) AND movements.reversed_at IS NULL
    )
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
        movements.provider, movements.charge
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT marked.id, marked.sequence, @event::TEXT, @now, @detail::TEXT FROM marked
    RETURNING movement_id
), told AS (
    INSERT INTO callbacks (
        merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts,
        created_at, due_bucket, due_at
    )
    SELECT marked.merchant_id, marked.mode, @callback_id::UUID, marked.id, marked.sequence, @callback_event::TEXT, marked.reference, @callback_url::TEXT,
        @callback_body::TEXT, @callback_state::TEXT, 0, @now, @callback_bucket::INT4, sqlc.narg(callback_due_at)
    FROM marked WHERE @callback_event::TEXT <> ''
    RETURNING event_id
), paid AS (
    UPDATE ledger_balances SET available = ledger_balances.available + @posted_available::INT8, held = ledger_balances.held + @posted_held::INT8
    FROM marked
    WHERE ledger_balances.merchant_id = marked.merchant_id AND ledger_balances.mode = marked.mode
        AND (@posted_available::INT8 <> 0 OR @posted_held::INT8 <> 0)
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT marked.merchant_id, marked.mode, marked.id, marked.attempt, 3, @posted_kind::TEXT, marked.provider, @now,
        @posted_available::INT8, @posted_held::INT8, @posted_margin::INT8, @posted_cost::INT8, @posted_deposit::INT8, 0
    FROM marked WHERE marked.charge <> '' AND @event::TEXT = 'reversed'
    RETURNING subject
)
SELECT marked.sequence FROM marked;

-- name: MovementByKey :one
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at
FROM movements
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND reference = @reference;

-- name: MovementByID :one
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at
FROM movements
WHERE id = @id;

-- name: DueMovements :many
-- The lower bound keeps the scan off the tombstones of work already done.
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at
FROM movements
WHERE due_bucket = ANY(@buckets::INT4[]) AND due_at IS NOT NULL AND due_at >= @since AND due_at <= @now
ORDER BY due_at
LIMIT @most;

-- name: PromiseMovement :one
-- Keeps the answer of a movement of which nobody knows yet whether the provider
-- has it.
UPDATE movements SET answer = @answer::TEXT
WHERE id = @id AND attempt = @attempt AND state = 'sending' AND answer IS NULL
RETURNING merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at;

-- name: AskMovement :one
-- Takes the right to ask the provider about a movement as the caller saw it: at
-- most one caller in any replica gets it in each span. Whoever saw an earlier
-- attempt would ask for that, and where asking is to send again, send it.
UPDATE movements SET asked_at = @now, due_at = @due_at
WHERE id = @id AND attempt = @attempt AND state = @state AND state IN ('sending', 'pending', 'expired', 'done')
    AND (asked_at IS NULL OR asked_at <= @before OR asked_at > @ahead)
RETURNING id;

-- name: MissMovement :one
-- Counts a lookup that proved the movement is not at the provider.
UPDATE movements SET misses = misses + 1, due_at = @due_at
WHERE id = @id AND attempt = @attempt AND state = 'sending'
RETURNING misses;

-- name: CompleteMovement :execrows
-- Adds what the call answered to a movement that somebody else's news had
-- already moved on, so that a replay finds the first answer.
UPDATE movements SET result = COALESCE(sqlc.narg(result), movements.result), answer = sqlc.narg(answer),
    provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
    expires_at = COALESCE(sqlc.narg(expires_at), expires_at)
WHERE id = @id AND attempt = @attempt AND answer IS NULL AND state IN ('pending', 'done', 'failed', 'expired');

-- name: SupplementMovement :one
-- Puts a fuller result in the place of the one that a movement was done with, if
-- that still stands there, and writes the event of its story in the same
-- statement. The state stays.
WITH filled AS (
    UPDATE movements SET result = @result::TEXT, sequence = movements.sequence + 1
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = 'done' AND movements.reversed_at IS NULL
        AND COALESCE(movements.result, '') = @earlier::TEXT
    RETURNING movements.id, movements.sequence
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT filled.id, filled.sequence, @event::TEXT, @now, @detail::TEXT FROM filled
    RETURNING movement_id
)
SELECT filled.sequence FROM filled;

-- name: MovementEvents :many
SELECT sequence, event, at, detail FROM movement_events
WHERE movement_id = @movement_id
ORDER BY sequence;
