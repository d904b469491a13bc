-- name: ReserveMovement :one
-- Reserves a reference and nothing else: a new row, or a row whose last attempt was
-- proven not submitted, of which nothing stays. The new attempt has the number that
-- the caller names, or the next one. No row comes back when the reference is taken,
-- or that number was passed.
INSERT INTO movements (
    merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
    amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
    send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account
)
VALUES (
    @merchant_id, @mode, @kind, @reference, @id, 1, @operation, @provider, 'submitting', 1,
    @amount, @request, @connection_version, '', '', @callback_url, @request_id, @policy_version, @decision_id,
    @send_by, @now, @now, 0, @due_bucket, @due_at, @cost, '', sqlc.narg(quote), @connection_owner, @connection_account
)
ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
    attempt = GREATEST(movements.attempt + 1, @attempt::INT4), operation = excluded.operation, provider = excluded.provider,
    state = 'submitting', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
    connection_version = excluded.connection_version,
    callback_url = excluded.callback_url, request_id = excluded.request_id,
    policy_version = excluded.policy_version, decision_id = excluded.decision_id,
    send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
    result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
    polled_at = NULL, misses = 0, due_at = excluded.due_at,
    cost = excluded.cost, charge = excluded.charge, quote = excluded.quote,
    connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
WHERE movements.state = 'not_submitted' AND (@attempt::INT4 = 0 OR movements.attempt < @attempt::INT4)
RETURNING id, attempt, sequence;

-- name: ReserveBalance :one
-- Reserves a reference as ReserveMovement does and takes its price from the balance.
-- No row comes back either when the balance is too small. Where two replicas both
-- saw a balance large enough for one of them, the constraint on the balance refuses
-- the later statement. It is a statement of its own because movements without a
-- balance must not pay for the ledger's part.
WITH reserved AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'submitting', 1,
        @amount::INT8, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, @cost::INT8, @charge::TEXT, sqlc.narg(quote)::TEXT, @connection_owner::TEXT, @connection_account::TEXT
    WHERE EXISTS (
        SELECT 1 FROM ledger_balances AS b
        WHERE b.merchant_id = @merchant_id::TEXT AND b.mode = @mode::TEXT AND b.available >= @amount::INT8
    )
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = GREATEST(movements.attempt + 1, @attempt::INT4), operation = excluded.operation, provider = excluded.provider,
        state = 'submitting', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
        polled_at = NULL, misses = 0, due_at = excluded.due_at,
        cost = excluded.cost, charge = excluded.charge, quote = excluded.quote,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
    WHERE movements.state = 'not_submitted' AND (@attempt::INT4 = 0 OR movements.attempt < @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.provider
), taken AS (
    UPDATE ledger_balances SET available = ledger_balances.available + @posted_available::INT8, held = ledger_balances.held + @posted_held::INT8
    FROM reserved
    WHERE ledger_balances.merchant_id = reserved.merchant_id AND ledger_balances.mode = reserved.mode
    RETURNING ledger_balances.merchant_id
), posted AS (
    INSERT INTO ledger_transactions (
        merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
    )
    SELECT reserved.merchant_id, reserved.mode, reserved.id, reserved.attempt, 1, @posted_kind::TEXT, reserved.provider, @now::TIMESTAMPTZ,
        @posted_available::INT8, @posted_held::INT8, @posted_margin::INT8, 0, 0, 0
    FROM reserved
    RETURNING subject
)
SELECT reserved.id, reserved.attempt, reserved.sequence FROM reserved;

-- name: ReserveLimits :one
-- Reserves a reference as ReserveMovement does and counts it against payout limits.
-- No row comes back either where one of them would be exceeded. Where two replicas
-- both saw room for one of them, the constraint on usage refuses the later statement.
WITH reserved AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account,
        fee, name_match, usage, fingerprint
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'submitting', 1,
        @amount::INT8, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, 0, '', sqlc.narg(quote)::TEXT, @connection_owner::TEXT, @connection_account::TEXT,
        @fee::INT8, sqlc.narg(name_match)::BOOL, sqlc.narg(usage)::TEXT, @fingerprint::TEXT
    WHERE NOT EXISTS (
        SELECT 1 FROM (
            SELECT UNNEST(@usage_names::TEXT[]) AS name, UNNEST(@usage_periods::TEXT[]) AS period,
                UNNEST(@usage_amounts::INT8[]) AS amount, UNNEST(@usage_ceilings::INT8[]) AS ceiling
        ) AS s
        LEFT JOIN usage AS u ON u.merchant_id = @merchant_id::TEXT AND u.mode = @mode::TEXT AND u.name = s.name AND u.period = s.period
        WHERE COALESCE(u.used, 0) + s.amount > s.ceiling
    )
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = movements.attempt + 1, operation = excluded.operation, provider = excluded.provider,
        state = 'submitting', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
        polled_at = NULL, misses = 0, due_at = excluded.due_at,
        cost = 0, charge = '', quote = excluded.quote,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account,
        fee = excluded.fee, name_match = excluded.name_match, usage = excluded.usage, delivered = FALSE
    WHERE movements.state = 'not_submitted' AND (@attempt::INT4 = 0 OR movements.attempt + 1 = @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode
), counted AS (
    INSERT INTO usage (merchant_id, mode, name, period, used, ceiling)
    SELECT reserved.merchant_id, reserved.mode, s.name, s.period, s.amount, s.ceiling
    FROM reserved, (
        SELECT UNNEST(@usage_names::TEXT[]) AS name, UNNEST(@usage_periods::TEXT[]) AS period,
            UNNEST(@usage_amounts::INT8[]) AS amount, UNNEST(@usage_ceilings::INT8[]) AS ceiling
    ) AS s
    ON CONFLICT (merchant_id, mode, name, period) DO UPDATE SET used = usage.used + excluded.used, ceiling = excluded.ceiling
    RETURNING merchant_id
)
SELECT reserved.id, reserved.attempt, reserved.sequence FROM reserved;

-- name: MoveMovement :one
-- Changes the state of a movement, if it is still in one of the states that the
-- caller expects, and writes its history in the same statement. A movement that was
-- charged can't end here.
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
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = ANY(@from_states::TEXT[])
        AND (movements.polled_at IS NULL OR movements.polled_at <= @polled_before::TIMESTAMPTZ)
        AND (movements.charge = '' OR @to_state = 'pending')
    RETURNING movements.id, movements.sequence, movements.updated_at, movements.merchant_id, movements.mode, movements.reference
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT moved.id, moved.sequence, @event::TEXT, @now, @detail::TEXT FROM moved
    RETURNING movement_id
), queued AS (
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

-- name: MoveBalance :one
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
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = ANY(@from_states::TEXT[])
        AND (movements.polled_at IS NULL OR movements.polled_at <= @polled_before::TIMESTAMPTZ)
        AND movements.charge <> ''
    RETURNING movements.id, movements.attempt, movements.sequence, movements.updated_at, movements.merchant_id, movements.mode,
        movements.reference, movements.provider
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT moved.id, moved.sequence, @event::TEXT, @now, @detail::TEXT FROM moved
    RETURNING movement_id
), queued AS (
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

-- name: MoveLimits :one
-- Changes the state of a movement as MoveMovement does, and gives back what it
-- counted against payout limits. An amount below zero is counted again, whatever the
-- limit is: the money has moved.
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
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = ANY(@from_states::TEXT[])
        AND (movements.polled_at IS NULL OR movements.polled_at <= @polled_before::TIMESTAMPTZ)
        AND (movements.charge = '' OR @to_state = 'pending')
    RETURNING movements.id, movements.sequence, movements.updated_at, movements.merchant_id, movements.mode, movements.reference
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT moved.id, moved.sequence, @event::TEXT, @now, @detail::TEXT FROM moved
    RETURNING movement_id
), queued AS (
    INSERT INTO callbacks (
        merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts,
        created_at, due_bucket, due_at
    )
    SELECT moved.merchant_id, moved.mode, @callback_id::UUID, moved.id, moved.sequence, @callback_event::TEXT, moved.reference, @callback_url::TEXT,
        @callback_body::TEXT, @callback_state::TEXT, 0, @now, @callback_bucket::INT4, sqlc.narg(callback_due_at)
    FROM moved WHERE @callback_event::TEXT <> ''
    RETURNING event_id
), released AS (
    UPDATE usage SET used = GREATEST(usage.used - s.amount, 0), ceiling = GREATEST(usage.ceiling, usage.used - s.amount)
    FROM moved, (
        SELECT UNNEST(@usage_names::TEXT[]) AS name, UNNEST(@usage_periods::TEXT[]) AS period, UNNEST(@usage_amounts::INT8[]) AS amount
    ) AS s
    WHERE usage.merchant_id = moved.merchant_id AND usage.mode = moved.mode AND usage.name = s.name AND usage.period = s.period
    RETURNING usage.merchant_id
)
SELECT moved.sequence, moved.updated_at FROM moved;

-- name: RecordFact :one
-- Records a fact after the end of a movement, once, with its posting: late money, or
-- a reversal of a success, or of late money that the caller saw. The state stays. A
-- second fact of the same sort is only an exception. The reversal of a charged
-- movement needs a posting: the constraint on kinds refuses it without one.
WITH marked AS (
    UPDATE movements SET sequence = movements.sequence + 1, updated_at = @now, due_at = NULL,
        paid_late_at = CASE WHEN @event::TEXT = 'paid_late' THEN @at ELSE movements.paid_late_at END,
        reversed_at = CASE WHEN @event::TEXT = 'reversed' THEN @at ELSE movements.reversed_at END
    WHERE movements.id = @id AND (
        @event::TEXT = 'paid_late' AND movements.state IN ('expired', 'failed') AND movements.paid_late_at IS NULL
        OR @event::TEXT = 'reversed' AND (
            movements.state = 'succeeded' OR @seen_late::BOOL AND movements.paid_late_at IS NOT NULL
        ) AND movements.reversed_at IS NULL
    )
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
        movements.provider, movements.charge
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT marked.id, marked.sequence, @event::TEXT, @now, @detail::TEXT FROM marked
    RETURNING movement_id
), queued AS (
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

-- name: AcknowledgeMovement :one
-- Keeps that a merchant is about to read pending, and its creation's answer if that
-- is one, while nobody knows yet whether the provider has the movement.
UPDATE movements SET state = 'acknowledged', answer = sqlc.narg(answer)
WHERE id = @id AND attempt = @attempt AND state = 'submitting'
RETURNING sqlc.embed(movements);

-- name: AnswerMovement :execrows
-- Adds the call's answer to a movement that another fact had moved on before, so
-- that a replay finds the first answer.
UPDATE movements SET result = COALESCE(sqlc.narg(result), movements.result), answer = sqlc.narg(answer),
    provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
    expires_at = COALESCE(sqlc.narg(expires_at), expires_at)
WHERE id = @id AND attempt = @attempt AND answer IS NULL AND state IN ('pending', 'succeeded', 'failed', 'expired');

-- name: SupplementMovement :one
-- Replaces the result of a succeeded movement with a fuller one, if it still has the
-- one that the caller saw, and writes its history in the same statement. The state
-- stays.
WITH filled AS (
    UPDATE movements SET result = @result::TEXT, sequence = movements.sequence + 1
    WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = 'succeeded' AND movements.reversed_at IS NULL
        AND COALESCE(movements.result, '') = @earlier::TEXT
    RETURNING movements.id, movements.sequence
), logged AS (
    INSERT INTO history (movement_id, sequence, event, at, detail)
    SELECT filled.id, filled.sequence, @event::TEXT, @now, @detail::TEXT FROM filled
    RETURNING movement_id
)
SELECT filled.sequence FROM filled;

-- name: PollMovement :one
-- Takes the right to poll a movement as the caller saw it: at most one caller in any
-- replica gets it in each span. A caller that saw an earlier attempt gets none: it
-- would poll for that attempt, and where a poll resubmits, submit it again.
UPDATE movements SET polled_at = @now, due_at = @due_at
WHERE id = @id AND attempt = @attempt AND state = ANY(@states::TEXT[]) AND state IN ('submitting', 'acknowledged', 'pending', 'succeeded', 'expired')
    AND (polled_at IS NULL OR polled_at <= @before OR polled_at > @ahead)
RETURNING id;

-- name: MissMovement :one
-- Counts a lookup that proved the movement is not at the provider.
UPDATE movements SET misses = misses + 1, due_at = @due_at
WHERE id = @id AND attempt = @attempt AND state IN ('submitting', 'acknowledged')
RETURNING misses;

-- name: DeliverMovement :exec
UPDATE movements SET delivered = TRUE WHERE id = @id;

-- name: MovementByKey :one
SELECT sqlc.embed(m) FROM movements AS m
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND reference = @reference;

-- name: MovementByID :one
SELECT sqlc.embed(m) FROM movements AS m
WHERE id = @id;

-- name: DueMovements :many
-- The lower bound keeps the scan off the tombstones of finished work.
SELECT sqlc.embed(m) FROM movements AS m
WHERE due_bucket = ANY(@buckets::INT4[]) AND due_at IS NOT NULL AND due_at >= @since AND due_at <= @now
ORDER BY due_at
LIMIT @most;

-- name: LastEqual :one
-- The newest of the movements with a fingerprint: their references end in a number
-- of fixed width.
SELECT sqlc.embed(m) FROM movements AS m
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND fingerprint = @fingerprint AND fingerprint <> ''
ORDER BY reference DESC
LIMIT 1;

-- name: PaidOut :many
-- The transfers of an account that have succeeded by the provider's own word, of some
-- amounts.
SELECT sqlc.embed(m) FROM movements AS m
WHERE m.merchant_id = @merchant_id AND m.mode = @mode AND m.kind = 'transfer' AND m.amount = ANY(@amounts::INT8[]) AND m.created_at >= @since
    AND m.provider = @provider AND m.connection_account = @account AND m.state = 'succeeded' AND m.reversed_at IS NULL AND m.id <> @id
    AND NOT EXISTS (SELECT 1 FROM overrides AS o WHERE o.movement_id = m.id AND o.attempt = m.attempt)
ORDER BY m.created_at DESC, m.reference
LIMIT @most;

-- name: ListMovements :many
-- The newest of each state by the index, and of these the newest.
SELECT sqlc.embed(m) FROM movements AS m
JOIN (
    SELECT found.id FROM (SELECT unnest(@states::TEXT[]) AS state) AS s
    CROSS JOIN LATERAL (
        SELECT l.id, l.created_at FROM movements AS l
        WHERE l.merchant_id = @merchant_id::TEXT AND l.mode = @mode::TEXT AND l.kind = @kind::TEXT AND l.state = s.state
            AND l.created_at >= @since::TIMESTAMPTZ AND l.created_at < @before::TIMESTAMPTZ
            AND (l.created_at, l.id) < (@after_at::TIMESTAMPTZ, @after::UUID)
            AND left(l.reference, length(@prefix::TEXT)) = @prefix::TEXT
        ORDER BY l.created_at DESC, l.id DESC
        LIMIT @most
    ) AS found
    ORDER BY found.created_at DESC, found.id DESC
    LIMIT @most
) AS listed ON listed.id = m.id
ORDER BY m.created_at DESC, m.id DESC;

-- name: MovementsByReference :many
-- Goes by the key, of each merchant.
SELECT sqlc.embed(m) FROM merchants AS t
JOIN movements AS m ON m.merchant_id = t.merchant_id
WHERE m.mode = ANY(@modes::TEXT[]) AND m.kind = ANY(@kinds::TEXT[]) AND m.reference = @reference
ORDER BY m.created_at DESC
LIMIT @most;

-- name: MovementsByOthersID :many
SELECT sqlc.embed(m) FROM movements AS m
WHERE due_bucket = ANY(@buckets::INT4[]) AND created_at >= @since AND created_at < @before
    AND (request_id = @id::TEXT OR decision_id = @id::TEXT OR provider_reference = @id::TEXT)
ORDER BY created_at DESC
LIMIT @most;
