-- name: SeeReplica :execrows
UPDATE replicas SET seen_at = @seen_at WHERE replica_id = @replica_id;

-- name: ReportReplica :exec
INSERT INTO replicas (
    replica_id, started_at, seen_at, policy_version, binary_version, schema_from, schema_below, plugins, plugin_files, host, tag
) VALUES (
    @replica_id, @started_at, @seen_at, @policy_version, @binary_version, @schema_from, @schema_below, @plugins, @plugin_files, @host, @tag
)
ON CONFLICT (replica_id) DO UPDATE SET
    started_at = excluded.started_at, seen_at = excluded.seen_at, policy_version = excluded.policy_version,
    binary_version = excluded.binary_version, schema_from = excluded.schema_from, schema_below = excluded.schema_below,
    plugins = excluded.plugins, plugin_files = excluded.plugin_files, host = excluded.host, tag = excluded.tag;

-- name: EndReplica :exec
UPDATE replicas SET ended_at = @ended_at WHERE replica_id = @replica_id;

-- name: ReplicasSeen :many
SELECT replica_id, started_at, seen_at, policy_version, binary_version, schema_from, schema_below, plugins, plugin_files, host, tag, ended_at
FROM replicas
WHERE seen_at >= @since
ORDER BY started_at, replica_id;

-- name: ForgetReplicas :exec
DELETE FROM replicas WHERE seen_at < @before;
