-- name: DueCallbacks :many
-- The oldest of each bucket by the index, and of these the oldest. What is under way,
-- and receivers and merchants that can take no more for now, are left out, so that one
-- who is slow never fills the page. They are the keys of objects, which both engines
-- search; an array they would read through for each row.
SELECT sqlc.embed(c) FROM callbacks AS c
JOIN (
    SELECT found.merchant_id, found.mode, found.event_id FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
    CROSS JOIN LATERAL (
        SELECT d.merchant_id, d.mode, d.event_id, d.due_at FROM callbacks AS d
        WHERE d.due_bucket = b.bucket AND d.due_at IS NOT NULL AND d.due_at >= @since AND d.due_at <= @now
            AND NOT (@under_way::JSONB ? (d.event_id::TEXT))
            AND NOT (@held::JSONB ? (d.merchant_id || '/' || d.mode))
            AND NOT (@held::JSONB ? (d.merchant_id || '/' || d.mode || '/' || split_part(d.url, '/', 3)))
        ORDER BY d.due_at
        LIMIT @each
    ) AS found
    ORDER BY found.due_at
    LIMIT @most
) AS due ON due.merchant_id = c.merchant_id AND due.mode = c.mode AND due.event_id = c.event_id
ORDER BY c.due_at;

-- name: RecordAttempts :one
-- Writes tries of deliveries and what follows from each, and says of which. The count of
-- tries is the guard: two replicas that sent the same event write one after the other. The
-- state is compared so that no index has it: where the database knows nothing of the table
-- yet, it would take the one of all that a merchant's receivers have not got.
WITH tried AS (
    UPDATE callbacks SET attempts = callbacks.attempts + 1, tries = callbacks.tries + 1, state = t.state,
        due_at = CASE WHEN t.state = 'waiting' THEN t.due_at END
    FROM (
        SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@events::UUID[]) AS event_id,
            unnest(@tries::INT4[]) AS tries, unnest(@states::TEXT[]) AS state, unnest(@dues::TIMESTAMPTZ[]) AS due_at,
            unnest(@ats::TIMESTAMPTZ[]) AS at, unnest(@took_ms::INT4[]) AS took_ms, unnest(@outcomes::TEXT[]) AS outcome,
            unnest(@statuses::INT4[]) AS status, unnest(@faults::TEXT[]) AS fault, unnest(@answers::TEXT[]) AS answer
    ) AS t
    WHERE callbacks.merchant_id = t.merchant_id AND callbacks.mode = t.mode AND callbacks.event_id = t.event_id
        AND callbacks.tries = t.tries AND callbacks.state IS NOT DISTINCT FROM 'waiting'
    RETURNING callbacks.merchant_id, callbacks.mode, callbacks.event_id, callbacks.tries, callbacks.movement_id, callbacks.event,
        callbacks.url, callbacks.state, t.at, t.took_ms, t.outcome, t.status, t.fault, t.answer
), kept AS (
    INSERT INTO callback_attempts (merchant_id, mode, event_id, attempt, at, took_ms, outcome, status, fault, answer)
    SELECT tried.merchant_id, tried.mode, tried.event_id, tried.tries, tried.at, tried.took_ms, tried.outcome, tried.status, tried.fault,
        tried.answer
    FROM tried
    RETURNING event_id
)
SELECT COALESCE(array_agg(event_id), '{}')::UUID[] AS written FROM tried;

-- name: PostponeCallback :exec
-- Puts off a delivery without a try, because its receiver is held for now.
UPDATE callbacks SET due_at = @due_at
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id AND state = 'waiting';

-- name: PostponeCallbacks :exec
-- Likewise for many, where nobody has written a try meanwhile.
UPDATE callbacks SET due_at = put.until
FROM (
    SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@events::UUID[]) AS event_id,
        unnest(@untils::TIMESTAMPTZ[]) AS until
) AS put
WHERE callbacks.merchant_id = put.merchant_id AND callbacks.mode = put.mode AND callbacks.event_id = put.event_id
    AND callbacks.state = 'waiting' AND callbacks.due_at <= @now;

-- name: GiveUpCallbacks :exec
-- Ends deliveries without a try, where nobody has written one meanwhile.
UPDATE callbacks SET state = 'dead', due_at = NULL
FROM (
    SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@events::UUID[]) AS event_id
) AS ended
WHERE callbacks.merchant_id = ended.merchant_id AND callbacks.mode = ended.mode AND callbacks.event_id = ended.event_id
    AND callbacks.state = 'waiting' AND callbacks.due_at <= @now;

-- name: Callback :one
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at, resent_at, written_at, trace
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id;

-- name: CallbackAttempts :many
SELECT attempt, at, took_ms, outcome, status, fault, answer FROM callback_attempts
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id
ORDER BY attempt;

-- name: CallbacksOf :many
-- The newest first, before a time, and of those of that very time the ones before an
-- event; state '' is any, and another one that most are in.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at, resent_at, written_at, trace
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND (@state::TEXT = '' OR state = @state)
    AND created_at >= @since AND created_at <= @until AND (created_at < @until OR event_id < @after)
ORDER BY created_at DESC, event_id DESC
LIMIT @most;

-- name: UndeliveredCallbacks :many
-- Those of a state that few are in, by its index, the newest first.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at, resent_at, written_at, trace
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND state = @state AND state IN ('waiting', 'gone', 'dead')
    AND created_at >= @since AND created_at <= @until AND (created_at < @until OR event_id < @after)
ORDER BY created_at DESC, event_id DESC
LIMIT @most;

-- name: CallbackFigures :many
-- Callbacks in numbers, by spans and as MovementFigures has them: a row for each state, and
-- one for after how many milliseconds a receiver had them.
WITH found AS (
    SELECT d.span, c.state, a.ms
    FROM (SELECT unnest(@spans::INT4[]) AS span, unnest(@since::TIMESTAMPTZ[]) AS since, unnest(@before::TIMESTAMPTZ[]) AS before) AS d
    CROSS JOIN LATERAL (
        SELECT b.merchant_id, b.mode, b.event_id, b.state, b.created_at FROM callbacks AS b
        WHERE b.merchant_id = @merchant_id::TEXT AND b.mode = @mode::TEXT AND b.created_at >= d.since AND b.created_at < d.before
        ORDER BY b.created_at DESC, b.event_id DESC
        LIMIT @most
    ) AS c
    LEFT JOIN LATERAL (
        SELECT GREATEST(floor(EXTRACT(EPOCH FROM t.at - c.created_at) * 1000), 0)::INT8 + t.took_ms AS ms FROM callback_attempts AS t
        WHERE t.merchant_id = c.merchant_id AND t.mode = c.mode AND t.event_id = c.event_id AND t.outcome = 'delivered'
        ORDER BY t.attempt
        LIMIT 1
    ) AS a ON TRUE
    LIMIT @most
)
SELECT span::INT4, state::TEXT, count(*) AS n, 0::INT8 AS median, 0::INT8 AS slow
FROM found GROUP BY span, state
UNION ALL
SELECT span, '', count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY ms), percentile_disc(0.95) WITHIN GROUP (ORDER BY ms)
FROM found WHERE ms IS NOT NULL GROUP BY span;

-- name: ResendCallback :execrows
-- A delivery that ended is sent again, under the same id; its first try counts
-- as one of a new series.
UPDATE callbacks SET state = 'waiting', attempts = 0, due_at = @now, resent_at = @now
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id AND url <> ''
    AND state IN ('delivered', 'gone', 'dead');

-- name: EventPlace :one
-- Where an event stands in its merchant's order.
SELECT COALESCE(written_at, created_at)::TIMESTAMPTZ AS place FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id;

-- name: EventsAfter :many
-- In the order of the database's clock, without what is younger by it: a commit that
-- is still open may hold an older one.
SELECT event_id, created_at, body FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode
    AND COALESCE(written_at, created_at) <= now() - sqlc.arg(age_us)::INT8 * INTERVAL '1 microsecond'
    AND (COALESCE(written_at, created_at), event_id) > (@place::TIMESTAMPTZ, @after::UUID)
ORDER BY COALESCE(written_at, created_at), event_id
LIMIT @most;

-- name: CallbacksByEvent :many
-- Goes by the key, of each merchant, as MovementsByReference does and for the same reason.
SELECT found.merchant_id, found.mode, found.event_id, found.event FROM merchants AS t
CROSS JOIN LATERAL (
    SELECT c.merchant_id, c.mode, c.event_id, c.event FROM callbacks AS c
    WHERE c.merchant_id = t.merchant_id AND c.mode = ANY(@modes::TEXT[]) AND c.event_id = @event_id
) AS found
LIMIT @most;
