-- name: PausesOf :many
SELECT merchant_id, what, provider, mode, reason, set_by, set_at FROM pauses
WHERE merchant_id = @merchant_id
ORDER BY what, provider, mode;

-- name: Pauses :many
SELECT merchant_id, what, provider, mode, reason, set_by, set_at FROM pauses
ORDER BY merchant_id, what, provider, mode
LIMIT @most;

-- name: PutPause :exec
INSERT INTO pauses (merchant_id, what, provider, mode, reason, set_by, set_at)
VALUES (@merchant_id, @what, @provider, @mode, @reason, @set_by, @set_at)
ON CONFLICT (merchant_id, what, provider, mode) DO UPDATE SET
    reason = excluded.reason, set_by = excluded.set_by;

-- name: DeletePause :execrows
DELETE FROM pauses WHERE merchant_id = @merchant_id AND what = @what AND provider = @provider AND mode = @mode;

-- name: DeletePausedConnection :execrows
-- Only what is paused is removed: nothing new begins on it. Its version is kept, so that
-- it never comes back.
WITH removed AS (
    DELETE FROM connections AS c
    WHERE c.merchant_id = @merchant_id AND c.provider = @provider AND c.mode = @mode
        AND EXISTS (
            SELECT 1 FROM pauses AS p
            WHERE p.merchant_id = c.merchant_id AND p.what = 'connection' AND p.provider = c.provider AND p.mode = c.mode
        )
    RETURNING c.merchant_id, c.mode, c.provider, c.version
)
INSERT INTO removed_connections (merchant_id, mode, provider, version)
SELECT removed.merchant_id, removed.mode, removed.provider, removed.version FROM removed
ON CONFLICT (merchant_id, mode, provider) DO UPDATE SET version = excluded.version;
