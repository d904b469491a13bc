-- name: DueCallbacks :many
-- Merchants that have enough under way are left out, so that one who is slow
-- never fills the page.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at
FROM callbacks
WHERE due_bucket = ANY(@buckets::INT4[]) AND due_at IS NOT NULL AND due_at >= @since AND due_at <= @now
    AND merchant_id <> ALL(@busy::TEXT[])
ORDER BY due_at
LIMIT @most;

-- name: RecordAttempt :one
-- Writes a try of a delivery and what follows from it. The count of tries is
-- the guard: two replicas that sent the same event write one after the other.
WITH tried AS (
    UPDATE callbacks SET attempts = callbacks.attempts + 1, tries = callbacks.tries + 1, state = @state, due_at = sqlc.narg(due_at)
    WHERE callbacks.merchant_id = @merchant_id AND callbacks.mode = @mode AND callbacks.event_id = @event_id
        AND callbacks.tries = @tries AND callbacks.state = 'waiting'
    RETURNING callbacks.merchant_id, callbacks.mode, callbacks.event_id, callbacks.attempts, callbacks.tries
), kept AS (
    INSERT INTO callback_attempts (merchant_id, mode, event_id, attempt, at, took_ms, outcome, status, fault, answer)
    SELECT tried.merchant_id, tried.mode, tried.event_id, tried.tries, @at, @took_ms::INT4, @outcome::TEXT, @status::INT4, @fault::TEXT,
        @answer::TEXT
    FROM tried
    RETURNING attempt
)
SELECT attempts FROM tried;

-- name: PostponeCallback :exec
-- Puts off a delivery without a try, because its receiver is held for now.
UPDATE callbacks SET due_at = @due_at
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id AND state = 'waiting';

-- name: Callback :one
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id;

-- name: CallbackAttempts :many
SELECT attempt, at, took_ms, outcome, status, fault, answer FROM callback_attempts
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id
ORDER BY attempt;

-- name: CallbacksOf :many
-- The newest first; state '' is any.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND (@state::TEXT = '' OR state = @state)
    AND created_at >= @since AND created_at < @until
ORDER BY created_at DESC, event_id DESC
LIMIT @most;

-- name: ResendCallback :execrows
-- A delivery that ended is sent again, under the same id; its first try counts
-- as one of a new series.
UPDATE callbacks SET state = 'waiting', attempts = 0, due_at = @now
WHERE merchant_id = @merchant_id AND mode = @mode AND event_id = @event_id AND url <> ''
    AND state IN ('delivered', 'gone', 'dead');

-- name: InsertCallback :exec
INSERT INTO callbacks (
    merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts,
    created_at, due_bucket, due_at
) VALUES (
    @merchant_id, @mode, @event_id, @movement_id, @sequence, @event, @reference, @url, @body, @state, 0,
    @created_at, @due_bucket, sqlc.narg(due_at)
);

-- name: EventsFirst :many
SELECT event_id, created_at, body FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND created_at < @before
ORDER BY created_at, event_id
LIMIT @most;

-- name: EventsAfter :many
SELECT callbacks.event_id, callbacks.created_at, callbacks.body FROM callbacks, callbacks AS last
WHERE last.merchant_id = @merchant_id AND last.mode = @mode AND last.event_id = @after
    AND callbacks.merchant_id = @merchant_id AND callbacks.mode = @mode AND callbacks.created_at < @before
    AND (callbacks.created_at, callbacks.event_id) > (last.created_at, last.event_id)
ORDER BY callbacks.created_at, callbacks.event_id
LIMIT @most;
