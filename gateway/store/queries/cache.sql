-- name: CachedAnswer :one
-- The body is empty where the caller has it already, or there is none.
SELECT coalesce(CASE WHEN fetched_at IS DISTINCT FROM @have::TIMESTAMPTZ THEN body END, '')::TEXT AS body,
    fetched_at, refreshing_until
FROM query_cache WHERE key = @key;

-- name: LeaseAnswer :execrows
-- Each time counts only where it is near: one that a wrong clock wrote far ahead puts nothing off.
INSERT INTO query_cache (key, refreshing_until) VALUES (@key, @until)
ON CONFLICT (key) DO UPDATE SET refreshing_until = excluded.refreshing_until
WHERE (query_cache.refreshing_until IS NULL
        OR NOT (query_cache.refreshing_until > @now::TIMESTAMPTZ AND query_cache.refreshing_until < @lease_before::TIMESTAMPTZ))
    AND (query_cache.fetched_at IS NULL
        OR NOT (query_cache.fetched_at > @fresh_after::TIMESTAMPTZ AND query_cache.fetched_at < @fresh_before::TIMESTAMPTZ))
    AND (query_cache.failed_at IS NULL
        OR NOT (query_cache.failed_at > @failed_after::TIMESTAMPTZ AND query_cache.failed_at < @failed_before::TIMESTAMPTZ));

-- name: KeepAnswer :execrows
UPDATE query_cache SET refreshing_until = NULL, failed_at = sqlc.narg(failed_at)::TIMESTAMPTZ,
    body = coalesce(sqlc.narg(body)::TEXT, body), fetched_at = coalesce(sqlc.narg(fetched_at)::TIMESTAMPTZ, fetched_at)
WHERE key = @key AND refreshing_until = @until;

-- name: DropAnswers :exec
DELETE FROM query_cache
WHERE (fetched_at IS NULL OR fetched_at < @before)
    AND (failed_at IS NULL OR failed_at < @before)
    AND (refreshing_until IS NULL OR refreshing_until < @before);
