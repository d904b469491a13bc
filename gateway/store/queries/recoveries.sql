-- name: BeginRecovery :exec
-- Where several begin one at once, it is one all the same: opening ends all. A gateway
-- that has just been started on the restored database is no trace of the time before.
-- Where there is no other, since is before all of them.
INSERT INTO recoveries (recovery_id, begun_at, since)
SELECT @recovery_id::UUID, @begun_at::TIMESTAMPTZ, COALESCE(
    (SELECT max(r.seen_at) FROM replicas AS r WHERE r.started_at < @started_before), (SELECT min(f.started_at) FROM replicas AS f)
)
WHERE NOT EXISTS (SELECT 1 FROM recoveries AS o WHERE o.opened_at IS NULL);

-- name: LastRecovery :one
-- The one that nobody has opened, else the last.
SELECT begun_at, since, opened_at FROM recoveries ORDER BY opened_at IS NOT NULL, begun_at DESC LIMIT 1;

-- name: EndRecovery :execrows
UPDATE recoveries SET opened_at = @opened_at::TIMESTAMPTZ, opened_by = @opened_by::TEXT WHERE opened_at IS NULL;
