-- name: ClaimTransfer :one
-- Claims a reference as ClaimMovement does and counts it against limits of money
-- out. No row comes back either where one of them would be exceeded. What two
-- replicas count at once below a limit seen by both, the constraint on limits
-- refuses, and with it the whole statement.
WITH claimed AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, misses, due_bucket, due_at, cost, charge, quote, connection_owner, connection_account,
        fee, name_match, spends, stem
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'sending', 1,
        @amount::INT8, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, 0, '', sqlc.narg(quote)::TEXT, @connection_owner::TEXT, @connection_account::TEXT,
        @fee::INT8, sqlc.narg(name_match)::BOOL, sqlc.narg(spends)::TEXT, @stem::TEXT
    WHERE NOT EXISTS (
        SELECT 1 FROM (
            SELECT UNNEST(@spend_names::TEXT[]) AS name, UNNEST(@spend_periods::TEXT[]) AS period,
                UNNEST(@spend_amounts::INT8[]) AS amount, UNNEST(@spend_ceilings::INT8[]) AS ceiling
        ) AS s
        LEFT JOIN usage AS u ON u.merchant_id = @merchant_id::TEXT AND u.mode = @mode::TEXT AND u.name = s.name AND u.period = s.period
        WHERE COALESCE(u.used, 0) + s.amount > s.ceiling
    )
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = movements.attempt + 1, operation = excluded.operation, provider = excluded.provider,
        state = 'sending', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = NULL,
        asked_at = NULL, misses = 0, due_at = excluded.due_at,
        cost = 0, charge = '', quote = excluded.quote,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account,
        fee = excluded.fee, name_match = excluded.name_match, spends = excluded.spends, delivered = FALSE
    WHERE movements.state = 'unsent' AND (@attempt::INT4 = 0 OR movements.attempt + 1 = @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode
), spent AS (
    INSERT INTO usage (merchant_id, mode, name, period, used, ceiling)
    SELECT claimed.merchant_id, claimed.mode, s.name, s.period, s.amount, s.ceiling
    FROM claimed, (
        SELECT UNNEST(@spend_names::TEXT[]) AS name, UNNEST(@spend_periods::TEXT[]) AS period,
            UNNEST(@spend_amounts::INT8[]) AS amount, UNNEST(@spend_ceilings::INT8[]) AS ceiling
    ) AS s
    ON CONFLICT (merchant_id, mode, name, period) DO UPDATE SET used = usage.used + excluded.used, ceiling = excluded.ceiling
    RETURNING merchant_id
)
SELECT claimed.id, claimed.attempt, claimed.sequence FROM claimed;

-- name: MoveTransfer :one
-- Changes the state of a movement as MoveMovement does, and gives back what it had
-- counted against limits of money out. Of an amount below zero it counts that again,
-- whatever the limit is: the money has moved.
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
), unspent AS (
    UPDATE usage SET used = GREATEST(usage.used - s.amount, 0), ceiling = GREATEST(usage.ceiling, usage.used - s.amount)
    FROM moved, (
        SELECT UNNEST(@spend_names::TEXT[]) AS name, UNNEST(@spend_periods::TEXT[]) AS period, UNNEST(@spend_amounts::INT8[]) AS amount
    ) AS s
    WHERE usage.merchant_id = moved.merchant_id AND usage.mode = moved.mode AND usage.name = s.name AND usage.period = s.period
    RETURNING usage.merchant_id
)
SELECT moved.sequence, moved.updated_at FROM moved;

-- name: LastNamed :one
-- The newest of the movements that were named by what they do: their references
-- end in a number of fixed width.
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at
FROM movements
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND stem = @stem AND stem <> ''
ORDER BY reference DESC
LIMIT 1;

-- name: DeliverMovement :exec
UPDATE movements SET delivered = TRUE WHERE id = @id;
