-- name: SeeReplica :exec
INSERT INTO replicas (replica_id, started_at, seen_at) VALUES (@replica_id, @seen_at, @seen_at)
ON CONFLICT (replica_id) DO UPDATE SET seen_at = excluded.seen_at;

-- name: ForgetReplicas :exec
DELETE FROM replicas WHERE seen_at < @before;
