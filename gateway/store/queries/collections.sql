-- name: ClaimCollection :one
-- Claims a reference as ClaimMovement does, with the first of the drawn amounts
-- that is free on the account, and takes that amount: its time is over, and so is
-- the collection that had it, which never opens again. No row comes back either
-- where none is free, or the account is another merchant's. What another replica
-- has taken meanwhile the constraint on slots refuses, and with it the whole
-- statement; so does the owner of an account that became another merchant's at this
-- moment.
WITH drawn AS (
    SELECT f.amount FROM (
        SELECT d.amount, d.place FROM (SELECT UNNEST(@amounts::INT8[]) AS amount, UNNEST(@places::INT4[]) AS place) AS d
        WHERE NOT EXISTS (
            SELECT 1 FROM collection_slots AS s WHERE s.account_id = @account_id AND s.amount = d.amount AND s.free_at > @now::TIMESTAMPTZ
        ) AND NOT EXISTS (
            SELECT 1 FROM statements AS b WHERE b.account_id = @account_id AND b.merchant_id <> @merchant_id::TEXT
        )
        ORDER BY d.place
        LIMIT 999 -- all of them: the rest is asked of one after the other
    ) AS f
    WHERE COALESCE((
        SELECT m.state FROM collection_slots AS s
        JOIN movements AS m ON m.id = s.movement_id AND m.amount = s.amount
        WHERE s.account_id = @account_id AND s.amount = f.amount
    ), '') NOT IN ('sending', 'pending')
    ORDER BY f.place
    LIMIT 1
), claimed AS (
    INSERT INTO movements (
        merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
        amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
        send_by, created_at, updated_at, expires_at, misses, due_bucket, due_at, cost, charge, connection_owner, connection_account
    )
    SELECT @merchant_id::TEXT, @mode::TEXT, @kind::TEXT, @reference::TEXT, @id::UUID, 1, @operation::TEXT, @provider::TEXT, 'sending', 1,
        drawn.amount, @request::TEXT, @connection_version::INT8, '', '', @callback_url::TEXT, @request_id::TEXT, @policy_version::TEXT,
        @decision_id::TEXT, @send_by::TIMESTAMPTZ, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, @expires_at::TIMESTAMPTZ, 0, @due_bucket::INT4,
        sqlc.narg(due_at)::TIMESTAMPTZ, 0, '', @connection_owner::TEXT, @connection_account::TEXT
    FROM drawn
    ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
        attempt = movements.attempt + 1, operation = excluded.operation, provider = excluded.provider,
        state = 'sending', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
        connection_version = excluded.connection_version,
        callback_url = excluded.callback_url, request_id = excluded.request_id,
        policy_version = excluded.policy_version, decision_id = excluded.decision_id,
        send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at,
        result = NULL, answer = NULL, refusal = NULL, provider_reference = '', fact_id = '', expires_at = excluded.expires_at,
        asked_at = NULL, misses = 0, due_at = excluded.due_at,
        connection_owner = excluded.connection_owner, connection_account = excluded.connection_account
    WHERE movements.state = 'unsent' AND (@attempt::INT4 = 0 OR movements.attempt + 1 = @attempt::INT4)
    RETURNING movements.id, movements.attempt, movements.sequence, movements.amount, movements.merchant_id, movements.mode, movements.provider
), opened AS (
    INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through)
    SELECT @account_id, claimed.merchant_id, claimed.mode, claimed.provider, '', @beginning::TIMESTAMPTZ FROM claimed
    WHERE NOT EXISTS (SELECT 1 FROM statements AS b WHERE b.account_id = @account_id)
    ON CONFLICT (account_id) DO UPDATE SET
        merchant_id = CASE WHEN statements.merchant_id = excluded.merchant_id THEN excluded.merchant_id END
    RETURNING account_id
), taken AS (
    INSERT INTO collection_slots (account_id, amount, movement_id, taken_at, free_at)
    SELECT @account_id, claimed.amount, claimed.id, @now::TIMESTAMPTZ, @free_at::TIMESTAMPTZ FROM claimed
    ON CONFLICT (account_id, amount) DO UPDATE SET
        movement_id = excluded.movement_id, free_at = excluded.free_at,
        taken_at = CASE WHEN collection_slots.free_at <= excluded.taken_at THEN excluded.taken_at ELSE excluded.free_at END
    RETURNING account_id
)
SELECT claimed.id, claimed.attempt, claimed.sequence, claimed.amount FROM claimed;

-- name: NextFreeSlot :one
-- When the first of some amounts becomes free, and whose the account is.
SELECT b.merchant_id, COALESCE((
    SELECT MIN(s.free_at) FROM collection_slots AS s
    WHERE s.account_id = b.account_id AND s.amount >= @least AND s.amount <= @most
), @now::TIMESTAMPTZ)::TIMESTAMPTZ AS free_at
FROM statements AS b
WHERE b.account_id = @account_id;

-- name: FreeSlot :exec
DELETE FROM collection_slots
WHERE account_id = @account_id AND amount = @amount AND movement_id = @movement_id AND free_at = @free_at::TIMESTAMPTZ;

-- name: StatementOf :one
SELECT merchant_id, mode, provider, cursor, through FROM statements WHERE account_id = @account_id;

-- name: AskStatement :one
-- Takes the right to read an account's reports, of one caller in each span. What a
-- clock that is ahead has written puts nothing off.
UPDATE statements SET asked_at = @now
WHERE account_id = @account_id AND (asked_at IS NULL OR asked_at <= @before OR asked_at > @ahead)
RETURNING account_id;

-- name: QuietStatements :many
-- Accounts whose reports nobody has read for a while.
SELECT account_id, merchant_id, mode, provider FROM statements
WHERE account_id > @after AND (asked_at IS NULL OR asked_at <= @before OR asked_at > @ahead)
ORDER BY account_id
LIMIT @most;

-- name: EnterStatement :one
-- Enters what was read from a cursor and moves it on, once: all of it or nothing.
-- What is known of a payment is only added to. A payment that was settled already
-- is looked at again when it was taken back, or is told otherwise, such as where a
-- part of it was taken back.
WITH advanced AS (
    UPDATE statements SET cursor = @next::TEXT, through = GREATEST(through, @through::TIMESTAMPTZ)
    WHERE statements.account_id = @account_id AND statements.cursor = @cursor::TEXT
    RETURNING statements.account_id
), entered AS (
    INSERT INTO settlements (
        account_id, payment, entry_id, amount, currency, at, paid, reversed_at, differs, data, entered_at, state, operator, reason
    )
    SELECT advanced.account_id, r.payment, r.entry_id, r.amount, r.currency, r.at, r.paid,
        CASE WHEN r.reversed THEN r.reversed_at END, r.differs, r.data, @now::TIMESTAMPTZ, 'new', '', ''
    FROM advanced, (
        SELECT UNNEST(@payments::TEXT[]) AS payment, UNNEST(@entry_ids::TEXT[]) AS entry_id, UNNEST(@amounts::INT8[]) AS amount,
            UNNEST(@currencies::TEXT[]) AS currency, UNNEST(@ats::TIMESTAMPTZ[]) AS at, UNNEST(@paids::BOOL[]) AS paid,
            UNNEST(@reverseds::BOOL[]) AS reversed, UNNEST(@reversed_ats::TIMESTAMPTZ[]) AS reversed_at,
            UNNEST(@differents::BOOL[]) AS differs, UNNEST(@datas::TEXT[]) AS data
    ) AS r
    ON CONFLICT (account_id, payment) DO UPDATE SET
        entry_id = CASE WHEN excluded.paid AND NOT settlements.paid THEN excluded.entry_id ELSE settlements.entry_id END,
        at = CASE WHEN excluded.paid AND NOT settlements.paid THEN excluded.at ELSE settlements.at END,
        amount = CASE WHEN excluded.paid AND NOT settlements.paid THEN excluded.amount ELSE settlements.amount END,
        currency = CASE WHEN excluded.paid AND NOT settlements.paid THEN excluded.currency ELSE settlements.currency END,
        data = CASE WHEN excluded.paid AND NOT settlements.paid THEN excluded.data ELSE settlements.data END,
        paid = settlements.paid OR excluded.paid,
        reversed_at = COALESCE(settlements.reversed_at, excluded.reversed_at),
        differs = settlements.differs OR excluded.differs OR settlements.amount <> excluded.amount OR settlements.currency <> excluded.currency
            OR settlements.paid AND excluded.paid AND settlements.at <> excluded.at,
        state = CASE
            WHEN settlements.state = 'paid' THEN 'matched'
            WHEN settlements.state = 'reversed' AND (excluded.differs OR settlements.amount <> excluded.amount OR settlements.currency <> excluded.currency)
                THEN CASE WHEN settlements.movement_id IS NULL THEN 'new' ELSE 'matched' END
            WHEN settlements.state IN ('unmatched', 'ambiguous', 'again') AND excluded.reversed_at IS NOT NULL AND NOT settlements.differs
                AND NOT excluded.differs AND settlements.amount = excluded.amount AND settlements.currency = excluded.currency THEN 'reversed'
            ELSE settlements.state END
    WHERE excluded.paid AND NOT settlements.paid
        OR excluded.reversed_at IS NOT NULL AND settlements.reversed_at IS NULL
        OR NOT settlements.differs AND (excluded.differs OR settlements.amount <> excluded.amount OR settlements.currency <> excluded.currency
            OR settlements.paid AND excluded.paid AND settlements.at <> excluded.at)
    RETURNING payment
)
SELECT advanced.account_id FROM advanced;

-- name: OpenSettlements :many
SELECT account_id, payment, entry_id, amount, currency, at, paid, reversed_at, differs, data, entered_at, state, movement_id, operator, reason
FROM settlements
WHERE account_id = @account_id AND state IN ('new', 'matched') AND payment > @after
ORDER BY payment
LIMIT @most;

-- name: SettlementByPayment :one
SELECT account_id, payment, entry_id, amount, currency, at, paid, reversed_at, differs, data, entered_at, state, movement_id, operator, reason
FROM settlements
WHERE account_id = @account_id AND payment = @payment;

-- name: SettlementsNamed :many
SELECT account_id, payment, entry_id, amount, currency, at, paid, reversed_at, differs, data, entered_at, state, movement_id, operator, reason
FROM settlements
WHERE account_id = @account_id AND payment = ANY(@payments::TEXT[]);

-- name: CollectionsOf :many
-- The collections of an account, made in a span of time, that payments of some
-- amounts may be for. One that was told of late money has had its payment, also
-- where an operator gave that to another.
SELECT m.id, m.amount, m.state, m.created_at, m.expires_at,
    (m.paid_late_at IS NOT NULL OR EXISTS (SELECT 1 FROM settlements AS s WHERE s.movement_id = m.id))::BOOL AS taken
FROM movements AS m
WHERE m.merchant_id = @merchant_id AND m.mode = @mode AND m.kind = 'collection' AND m.amount = ANY(@amounts::INT8[])
    AND m.provider = @provider AND m.connection_account = @account AND m.state IN ('sending', 'pending', 'done', 'expired')
    AND m.created_at >= @earliest AND m.created_at <= @latest;

-- name: JudgeSettlements :many
-- Decides payments of which nobody had decided, and puts those that a person must
-- see on the operators' list. The verdicts stand in one document by the payments'
-- names: joined to an array, a page costs its square wherever the planner takes the
-- open payments for few.
WITH judged AS (
    UPDATE settlements SET
        state = (@verdicts::JSONB -> settlements.payment) ->> 'state',
        movement_id = ((@verdicts::JSONB -> settlements.payment) ->> 'movement')::UUID
    WHERE settlements.account_id = @account_id AND settlements.payment = ANY(@payments::TEXT[]) AND settlements.state = 'new'
    RETURNING settlements.payment, settlements.entry_id
), listed AS (
    INSERT INTO attention (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
    SELECT @merchant_id::TEXT, @mode::TEXT, 'payment ' || judged.payment, (@verdicts::JSONB -> judged.payment) ->> 'reason', judged.entry_id,
        @provider::TEXT, (@verdicts::JSONB -> judged.payment) ->> 'detail', @now::TIMESTAMPTZ
    FROM judged WHERE (@verdicts::JSONB -> judged.payment) ->> 'reason' <> ''
    ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING
    RETURNING subject
)
SELECT judged.payment FROM judged;

-- name: CloseSettlements :execrows
-- Notes that payments have done to their collections what they mean. What was
-- told of one meanwhile is another story, which stays open: seen says by its name
-- how each stood, and which collection it had.
UPDATE settlements SET state = CASE WHEN reversed_at IS NOT NULL AND NOT differs THEN 'reversed' ELSE 'paid' END
WHERE account_id = @account_id AND payment = ANY(@payments::TEXT[]) AND state = 'matched'
    AND movement_id::TEXT || CASE WHEN reversed_at IS NULL THEN ' stays' ELSE ' reversed' END || CASE WHEN differs THEN ', differs' ELSE '' END
        = @seen::JSONB ->> payment;

-- name: AssignSettlement :one
-- Gives a payment to a collection by an operator's word, if it still stands where
-- the operator saw it, and tells so in the story of the one that had it.
WITH assigned AS (
    UPDATE settlements SET state = 'matched', movement_id = @movement_id::UUID, operator = @operator, reason = @reason
    WHERE account_id = @account_id AND payment = @payment AND state = @from_state::TEXT AND reversed_at IS NULL AND paid
        AND (movement_id = sqlc.narg(from_movement)::UUID OR movement_id IS NULL AND sqlc.narg(from_movement)::UUID IS NULL)
    RETURNING payment
), lost AS (
    UPDATE movements SET sequence = movements.sequence + 1
    FROM assigned
    WHERE movements.id = sqlc.narg(from_movement)::UUID
    RETURNING movements.id, movements.sequence
), story AS (
    INSERT INTO movement_events (movement_id, sequence, event, at, detail)
    SELECT lost.id, lost.sequence, 'given_away', @now, @detail::TEXT FROM lost
    RETURNING movement_id
)
SELECT assigned.payment FROM assigned;

-- name: ListSettlements :many
-- Payments that wait for an operator, the newest first.
SELECT b.merchant_id, b.mode, b.provider, s.account_id, s.payment, s.entry_id, s.amount, s.currency, s.at, s.state, s.data
FROM settlements AS s
JOIN statements AS b ON b.account_id = s.account_id
WHERE b.merchant_id = @merchant_id AND s.state IN ('unmatched', 'ambiguous', 'again')
ORDER BY s.at DESC
LIMIT @most;
