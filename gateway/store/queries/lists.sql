-- name: NextListVersion :one
-- Acts on lists come one after another: who reads a version has all before it.
INSERT INTO list_heads (id, version) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET version = list_heads.version + 1
RETURNING version;

-- name: ListVersion :one
SELECT COALESCE(max(version), 0)::INT8 AS version FROM list_heads;

-- name: PutListEntries :execrows
-- What is on the list already is set anew, or off it.
INSERT INTO list_entries (list, digest, masked, reason, set_by, set_at, ends_at, removed, version)
SELECT @list, e.digest, e.masked, e.reason, @set_by, @set_at, NULLIF(e.ends_at, @never::TIMESTAMPTZ), false, @version
FROM (
    SELECT unnest(@digests::BYTEA[]) AS digest, unnest(@masked::TEXT[]) AS masked, unnest(@reasons::TEXT[]) AS reason,
        unnest(@ends::TIMESTAMPTZ[]) AS ends_at
) AS e
ON CONFLICT (list, digest) DO UPDATE SET
    masked = excluded.masked, reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at, ends_at = excluded.ends_at,
    removed = false, version = excluded.version;

-- name: RemoveListEntries :execrows
UPDATE list_entries SET removed = true, reason = @reason, set_by = @set_by, set_at = @set_at, version = @version
WHERE list = @list AND digest = ANY(@digests::BYTEA[]) AND NOT removed;

-- name: ListChanges :many
SELECT list, digest, ends_at, removed, version FROM list_entries
WHERE (version, list, digest) > (@version::INT8, @list::TEXT, @digest::BYTEA) AND version <= @until
ORDER BY version, list, digest
LIMIT @most;

-- name: ListEntries :many
SELECT digest, masked, reason, set_by, set_at, ends_at FROM list_entries
WHERE list = @list AND NOT removed AND (ends_at IS NULL OR ends_at > @now::TIMESTAMPTZ) AND digest > @after
ORDER BY digest
LIMIT @most;

-- name: ListEntriesOf :many
SELECT digest, masked, reason, set_by, set_at, ends_at FROM list_entries
WHERE list = @list AND digest = ANY(@digests::BYTEA[]) AND NOT removed AND (ends_at IS NULL OR ends_at > @now::TIMESTAMPTZ);

-- name: Lists :many
SELECT list, count(*) AS entries, max(set_at)::TIMESTAMPTZ AS changed FROM list_entries
WHERE NOT removed AND (ends_at IS NULL OR ends_at > @now::TIMESTAMPTZ)
GROUP BY list
ORDER BY list;
