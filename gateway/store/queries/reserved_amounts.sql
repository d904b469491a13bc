-- name: ReserveAmount :one
-- Reserves a reference as ReserveMovement does, with the least recently used of the
-- drawn amounts that are free on the account, and reserves that amount. Which of those
-- that were used in the same minute, or never, is drawn: who reserves at the same moment
-- must not want the same. An amount is free when its
-- time is over and the collection that had it has ended, which never opens again. No
-- row comes back either where none is free, or the account is another merchant's.
-- Where another replica has reserved the amount meanwhile, the constraint on reserved
-- amounts refuses the statement; where the account became another merchant's
-- meanwhile, its owner that may not be NULL does.
WITH drawn AS (
    SELECT f.amount FROM (
        SELECT d.amount, d.place, COALESCE(date_trunc('minute', u.taken_at), @beginning::TIMESTAMPTZ) AS used
        FROM (SELECT UNNEST(@amounts::INT8[]) AS amount, UNNEST(@places::INT4[]) AS place) AS d
        LEFT JOIN reserved_amounts AS u ON u.account_id = @account_id AND u.amount = d.amount
        WHERE COALESCE(u.free_at, @beginning::TIMESTAMPTZ) <= @now::TIMESTAMPTZ AND NOT EXISTS (
            SELECT 1 FROM statements AS b WHERE b.account_id = @account_id AND b.merchant_id <> @merchant_id::TEXT
        )
        ORDER BY used, d.place
        LIMIT 999 -- all of them, so that the rest is checked one by one
    ) AS f
    WHERE COALESCE((
        SELECT m.state FROM reserved_amounts AS s
        JOIN movements AS m ON m.id = s.movement_id AND m.amount = s.amount
        WHERE s.account_id = @account_id AND s.amount = f.amount
    ), '') NOT IN ('submitting', 'acknowledged', 'pending')
    ORDER BY f.used, f.place
    LIMIT 1
), reserved AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, expires_at, misses, due_bucket, due_at, cost, charge, connection_owner, connection_account
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'submitting', 1,
        drawn.amount, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, @expires_at::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, 0, '', @connection_owner::TEXT, @connection_account::TEXT
    FROM drawn
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = movements.attempt + 1, operation = excluded.operation, provider = excluded.provider,
        state = 'submitting', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = excluded.expires_at,
        polled_at = NULL, misses = 0, due_at = excluded.due_at,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
    WHERE movements.state = 'not_submitted' AND (@attempt::INT4 = 0 OR movements.attempt + 1 = @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.amount, movements.merchant_id, movements.mode, movements.provider
), opened AS (
    INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through)
    SELECT @account_id, reserved.merchant_id, reserved.mode, reserved.provider, '', @beginning::TIMESTAMPTZ FROM reserved
    WHERE NOT EXISTS (SELECT 1 FROM statements AS b WHERE b.account_id = @account_id)
    ON CONFLICT (account_id) DO UPDATE SET
        merchant_id = CASE WHEN statements.merchant_id = excluded.merchant_id THEN excluded.merchant_id END
    RETURNING account_id
), taken AS (
    INSERT INTO reserved_amounts (account_id, amount, movement_id, taken_at, free_at)
    SELECT @account_id, reserved.amount, reserved.id, @now::TIMESTAMPTZ, @free_at::TIMESTAMPTZ FROM reserved
    ON CONFLICT (account_id, amount) DO UPDATE SET
        movement_id = excluded.movement_id, free_at = excluded.free_at,
        taken_at = CASE WHEN reserved_amounts.free_at <= excluded.taken_at THEN excluded.taken_at ELSE excluded.free_at END
    RETURNING account_id
)
SELECT reserved.id, reserved.attempt, reserved.sequence, reserved.amount FROM reserved;

-- name: NextFreeAmount :one
-- When the first of some amounts becomes free, and whose the account is.
SELECT b.merchant_id, COALESCE((
    SELECT MIN(s.free_at) FROM reserved_amounts AS s
    WHERE s.account_id = b.account_id AND s.amount >= @least AND s.amount <= @most
), @now::TIMESTAMPTZ)::TIMESTAMPTZ AS free_at
FROM statements AS b
WHERE b.account_id = @account_id;

-- name: ReleaseAmount :exec
DELETE FROM reserved_amounts
WHERE account_id = @account_id AND amount = @amount AND movement_id = @movement_id AND taken_at = @taken_at::TIMESTAMPTZ;
