-- name: AcknowledgeMovement :one
-- Keeps that a merchant is about to read pending, and its creation's answer if that
-- is one, while nobody knows yet whether the provider has the movement. It takes the
-- movement's row of polls first, as every change of state does, so that who decided
-- before decides anew.
WITH taken AS (
    UPDATE polls SET version = polls.version + 1
    FROM movements AS m
    WHERE polls.movement_id = @id AND polls.attempt = @attempt AND m.id = polls.movement_id AND m.state = 'submitting'
    RETURNING polls.movement_id, polls.version, polls.asked_at, polls.due, polls.misses
)
UPDATE movements SET state = 'acknowledged', answer = sqlc.narg(answer)
FROM taken
WHERE movements.id = @id AND movements.id = taken.movement_id AND movements.attempt = @attempt AND movements.state = 'submitting'
RETURNING sqlc.embed(movements), taken.version, taken.asked_at, taken.due, taken.misses;

-- name: PollMovement :one
-- Takes the right to poll a movement as the caller saw it.
UPDATE polls SET asked_at = @now, due = sqlc.narg(due), version = version + 1
WHERE movement_id = @id AND attempt = @attempt AND version = @version
RETURNING movement_id;

-- name: LastPoll :one
-- Likewise, where it is the last. Of an earlier attempt there is nothing to ask.
DELETE FROM polls WHERE movement_id = @id AND (attempt = @attempt AND version = @version OR attempt < @attempt)
RETURNING movement_id;

-- name: MissMovement :one
-- Counts a lookup that proved the movement is not at the provider, if nobody has polled
-- it since.
UPDATE polls SET misses = misses + 1, due = sqlc.narg(due)
WHERE movement_id = @id AND attempt = @attempt AND version = @version
RETURNING misses;

-- name: DuePolls :many
-- The first of each place in the queue, by the index.
SELECT found.movement_id, found.account, found.due FROM (
    SELECT unnest(@buckets::INT4[]) AS bucket, unnest(@dues::TIMESTAMPTZ[]) AS due, unnest(@ids::UUID[]) AS id
) AS b
CROSS JOIN LATERAL (
    SELECT d.movement_id, d.account, d.due::TIMESTAMPTZ AS due FROM polls AS d
    WHERE d.bucket = b.bucket AND (d.due, d.movement_id) > (b.due, b.id) AND d.due <= @now
    ORDER BY d.due, d.movement_id
    LIMIT @most
) AS found
ORDER BY found.due, found.movement_id;

-- name: UncarriedMovements :many
-- Those that a gateway of before has made or polled, and that are due.
SELECT found.id FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT m.id FROM movements AS m
    WHERE m.due_bucket = b.bucket AND m.due_at IS NOT NULL AND m.due_at <= @now
    ORDER BY m.due_at
    LIMIT @most
) AS found;

-- name: MovementByKey :one
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
WHERE merchant_id = @merchant_id AND mode = @mode AND kind = @kind AND reference = @reference;

-- name: MovementByID :one
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
WHERE m.id = @id;

-- name: MovementsByID :many
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
WHERE m.id = ANY(@ids::UUID[]);

-- name: LastEqual :one
-- The newest of the movements with a fingerprint: their references are the fingerprint
-- and a number of fixed width, so it is the last of these by the key.
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
JOIN (
    SELECT l.id FROM movements AS l
    WHERE l.merchant_id = @merchant_id AND l.mode = @mode AND l.kind = @kind
        AND l.reference >= @fingerprint::TEXT || '00000000' AND l.reference <= @fingerprint::TEXT || '99999999'
    ORDER BY l.reference DESC
    LIMIT 1
) AS last ON last.id = m.id
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
WHERE m.fingerprint = @fingerprint::TEXT AND m.fingerprint <> '';
