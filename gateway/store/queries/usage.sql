-- name: TakeUsage :one
-- Takes as many units as are left below the limit, however few. No row comes back
-- when there is none, when none is left, or when this batch of the replica or a
-- later one was counted already. The mark tells when, by the clock of the database,
-- which is one for all replicas. All marks come back once they are many.
UPDATE usage SET
    used = LEAST(usage.used + @want::INT8, @most::INT8), ceiling = @most::INT8,
    marks = usage.marks || JSONB_BUILD_OBJECT(@replica::TEXT, JSONB_BUILD_ARRAY(@batch::INT8,
        LEAST(usage.used + @want::INT8, @most::INT8) - usage.used, EXTRACT(EPOCH FROM CLOCK_TIMESTAMP())::INT8))
WHERE usage.merchant_id = @merchant_id AND usage.mode = @mode AND usage.name = @name AND usage.period = @period
    AND usage.used < @most::INT8
    AND COALESCE((usage.marks -> @replica::TEXT ->> 0)::INT8, 0) < @batch::INT8
RETURNING used, (marks -> @replica::TEXT ->> 1)::INT8 AS taken,
    CASE WHEN LENGTH(marks::TEXT) > 1000 THEN marks ELSE '{}'::JSONB END AS many;

-- name: GiveUsage :one
-- Gives units back. No row comes back as with TakeUsage.
UPDATE usage SET
    used = GREATEST(usage.used - @back::INT8, 0),
    marks = usage.marks || JSONB_BUILD_OBJECT(@replica::TEXT, JSONB_BUILD_ARRAY(@batch::INT8, 0, EXTRACT(EPOCH FROM CLOCK_TIMESTAMP())::INT8))
WHERE usage.merchant_id = @merchant_id AND usage.mode = @mode AND usage.name = @name AND usage.period = @period
    AND COALESCE((usage.marks -> @replica::TEXT ->> 0)::INT8, 0) < @batch::INT8
RETURNING used, CASE WHEN LENGTH(marks::TEXT) > 1000 THEN marks ELSE '{}'::JSONB END AS many;

-- name: DropMark :exec
-- Drops the mark of a replica, unless it has counted since. One without a time is
-- from before marks had any.
UPDATE usage SET marks = usage.marks - @replica::TEXT
WHERE usage.merchant_id = @merchant_id AND usage.mode = @mode AND usage.name = @name AND usage.period = @period
    AND COALESCE((usage.marks -> @replica::TEXT ->> 2)::INT8, 0) < @before::INT8;

-- name: CountedUsage :one
-- What is used, and the last batch of a replica that was counted.
SELECT used, COALESCE((marks -> @replica::TEXT ->> 0)::INT8, 0)::INT8 AS batch,
    COALESCE((marks -> @replica::TEXT ->> 1)::INT8, 0)::INT8 AS taken
FROM usage
WHERE merchant_id = @merchant_id AND mode = @mode AND name = @name AND period = @period;

-- name: DropUsage :execrows
DELETE FROM usage WHERE (merchant_id, mode, name, period) IN (
    SELECT u.merchant_id, u.mode, u.name, u.period FROM usage AS u
    WHERE u.period < @before::TEXT
    LIMIT @most::INT8
);

-- name: UsageOf :many
SELECT name, used FROM usage
WHERE merchant_id = @merchant_id AND mode = @mode AND period = @period
ORDER BY name;

-- name: UsageIn :many
-- What is used of everything in a period, by one merchant or by all.
SELECT merchant_id, mode, name, used FROM usage
WHERE period = @period AND (@merchant_id::TEXT = '' OR merchant_id = @merchant_id::TEXT);
