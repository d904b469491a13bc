-- name: ClaimMovement :one
-- Claims a reference: a new row, or a row whose last attempt was proven never
-- sent, of which nothing may reach the next. No row comes back when the
-- reference is taken.
INSERT INTO movements (
    merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
    amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
    send_by, created_at, updated_at, misses, due_bucket, due_at
) VALUES (
    @merchant_id, @mode, @kind, @reference, @id, 1, @operation, @provider, 'sending', 1,
    @amount, @request, @connection_version, '', '', @callback_url, @request_id, @policy_version, @decision_id,
    @send_by, @now, @now, 0, @due_bucket, @due_at
)
ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
    attempt = movements.attempt + 1, operation = excluded.operation, provider = excluded.provider,
    state = 'sending', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
    connection_version = excluded.connection_version,
    callback_url = excluded.callback_url, request_id = excluded.request_id,
    policy_version = excluded.policy_version, decision_id = excluded.decision_id,
    send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
    result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
    asked_at = NULL, misses = 0, due_at = excluded.due_at
WHERE movements.state = 'unsent'
RETURNING id, attempt, sequence;

-- name: MoveMovement :one
-- Changes the state of a movement, if it still stands where the caller saw it,
-- and writes the event of its story in the same statement.
WITH moved AS (
    UPDATE movements SET
        state = @to_state, sequence = movements.sequence + 1, updated_at = @now, misses = 0,
        result = COALESCE(sqlc.narg(result), movements.result),
        answer = COALESCE(sqlc.narg(answer), movements.answer),
        refusal = COALESCE(sqlc.narg(refusal), movements.refusal),
        provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
        fact_id = COALESCE(NULLIF(@fact_id::TEXT, ''), fact_id),
        expires_at = COALESCE(sqlc.narg(expires_at), expires_at),
        due_at = sqlc.narg(due_at)
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = @from_state
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
)
SELECT moved.sequence, moved.updated_at FROM moved;

-- name: RecordPaidLate :one
-- Records money that came after the movement had ended without it. The state
-- stays; a second fact of the same sort is the operators' list's alone.
WITH marked AS (
    UPDATE movements SET paid_late_at = @at, sequence = movements.sequence + 1, updated_at = @now, due_at = NULL
    WHERE movements.id = @id AND movements.state IN ('expired', 'failed') AND movements.paid_late_at IS NULL
    RETURNING movements.id, movements.sequence, movements.merchant_id, movements.mode, movements.reference
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT marked.id, marked.sequence, 'paid_late', @now, @detail::TEXT FROM marked
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
)
SELECT marked.sequence FROM marked;

-- name: RecordReversed :one
-- Records that the provider took a success back. The state stays.
WITH marked AS (
    UPDATE movements SET reversed_at = @at, sequence = movements.sequence + 1, updated_at = @now, due_at = NULL
    WHERE movements.id = @id AND movements.state = 'done' AND movements.reversed_at IS NULL
    RETURNING movements.id, movements.sequence, movements.merchant_id, movements.mode, movements.reference
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT marked.id, marked.sequence, 'reversed', @now, @detail::TEXT FROM marked
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
)
SELECT marked.sequence FROM marked;

-- name: MovementByKey :one
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at
FROM movements
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND reference = @reference;

-- name: MovementByID :one
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at
FROM movements
WHERE id = @id;

-- name: DueMovements :many
-- The lower bound keeps the scan off the tombstones of work already done.
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at
FROM movements
WHERE due_bucket = ANY(@buckets::INT4[]) AND due_at IS NOT NULL AND due_at >= @since AND due_at <= @now
ORDER BY due_at
LIMIT @most;

-- name: AskMovement :one
-- Takes the right to ask the provider about a movement: at most one caller in
-- any replica gets it in each span.
UPDATE movements SET asked_at = @now, due_at = @due_at
WHERE id = @id AND state IN ('sending', 'pending', 'expired') AND (asked_at IS NULL OR asked_at <= @before)
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

-- name: MovementEvents :many
SELECT sequence, event, at, detail FROM movement_events
WHERE movement_id = @movement_id
ORDER BY sequence;
