-- name: TakeLeases :many
-- Takes or renews of some buckets those that are free, run out or ours. All
-- replicas go by the buckets' order, so none waits for another in a circle.
INSERT INTO leases (queue, bucket, holder, expires_at)
SELECT @queue::TEXT, wanted.bucket, @holder::TEXT, @expires_at::TIMESTAMPTZ
FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS wanted
ORDER BY wanted.bucket
ON CONFLICT (queue, bucket) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= @now::TIMESTAMPTZ
RETURNING bucket;

-- name: DropLeases :exec
DELETE FROM leases WHERE queue = @queue AND bucket = ANY (@buckets::INT4[]) AND holder = @holder;

-- name: LiveLeases :one
SELECT count(*) FROM leases WHERE queue = @queue AND expires_at > @now;
