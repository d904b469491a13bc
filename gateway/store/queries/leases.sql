-- name: TakeLeases :many
-- Takes or renews of some buckets those that are free, run out or ours. One that
-- lasts longer than any right clock would have written is free. All replicas go by
-- the buckets' order, so none waits for another in a circle.
INSERT INTO leases (queue, bucket, holder, expires_at)
SELECT @queue::TEXT, wanted.bucket, @holder::TEXT, @expires_at::TIMESTAMPTZ
FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS wanted
ORDER BY wanted.bucket
ON CONFLICT (queue, bucket) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= @now::TIMESTAMPTZ OR leases.expires_at > @ahead::TIMESTAMPTZ
RETURNING bucket;

-- name: DropLeases :exec
-- In the buckets' order too.
WITH ours AS (
    SELECT l.bucket FROM leases AS l
    WHERE l.queue = @queue AND l.bucket = ANY (@buckets::INT4[]) AND l.holder = @holder
    ORDER BY l.bucket
    FOR UPDATE
)
DELETE FROM leases WHERE leases.queue = @queue AND leases.bucket IN (SELECT ours.bucket FROM ours);

-- name: LiveLeases :one
SELECT count(*) FROM leases WHERE queue = @queue AND expires_at > @now AND expires_at <= @ahead::TIMESTAMPTZ;
