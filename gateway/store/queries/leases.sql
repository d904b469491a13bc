-- name: TakeLease :execrows
-- Takes or renews a bucket, if it is free, run out or ours.
INSERT INTO leases (queue, bucket, holder, expires_at)
VALUES (@queue, @bucket, @holder, @expires_at)
ON CONFLICT (queue, bucket) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
WHERE leases.holder = excluded.holder OR leases.expires_at <= @now;

-- name: DropLease :exec
DELETE FROM leases WHERE queue = @queue AND bucket = @bucket AND holder = @holder;

-- name: LiveLeases :one
SELECT count(*) FROM leases WHERE queue = @queue AND expires_at > @now;
