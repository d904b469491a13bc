-- name: CountExceptions :many
SELECT reason, count(*) AS entries FROM exceptions
WHERE resolved_at IS NULL
GROUP BY reason
ORDER BY reason;

-- name: OpenExceptions :many
-- The newest of each shard by the index, and of these the newest.
SELECT found.merchant_id, found.mode, found.subject, found.reason, found.fact_id, found.provider, found.detail, found.at, found.times
FROM (SELECT unnest(@shards::TEXT[]) AS shard) AS s
CROSS JOIN LATERAL (
    SELECT e.merchant_id, e.mode, e.subject, e.reason, e.fact_id, e.provider, e.detail, e.at, e.times FROM exceptions AS e
    WHERE left(md5(e.merchant_id), 1) = s.shard AND e.resolved_at IS NULL
    ORDER BY e.at DESC
    LIMIT @most
) AS found
ORDER BY found.at DESC
LIMIT @most;

-- name: ExceptionsOf :many
SELECT merchant_id, mode, subject, reason, fact_id, provider, detail, at, resolved_at, resolved_by, resolution, times FROM exceptions
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject
ORDER BY at, reason, fact_id;

-- name: CountException :one
-- Counts an exception that is there, with the last detail of it. One that was resolved
-- begins anew.
UPDATE exceptions SET
    detail = @detail, at = CASE WHEN resolved_at IS NULL THEN at ELSE @at END,
    times = CASE WHEN resolved_at IS NULL THEN times + 1 ELSE 1 END,
    resolved_at = NULL, resolved_by = NULL, resolution = NULL
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = @reason AND fact_id = @fact_id
RETURNING times;

-- name: ResolveExceptions :exec
UPDATE exceptions SET resolved_at = @now::TIMESTAMPTZ, resolved_by = @operator::TEXT, resolution = @resolution::TEXT
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = ANY(@reasons::TEXT[]) AND resolved_at IS NULL;
