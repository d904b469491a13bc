-- name: AddException :execrows
INSERT INTO exceptions (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
VALUES (@merchant_id, @mode, @subject, @reason, @fact_id, @provider, @detail, @at)
ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING;

-- name: RenewException :execrows
INSERT INTO exceptions (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
SELECT @merchant_id::TEXT, @mode::TEXT, @subject::TEXT, @reason::TEXT, @fact_id::TEXT || ' #' || (count(*) + 1)::TEXT, @provider::TEXT, @detail::TEXT, @at::TIMESTAMPTZ
FROM exceptions
WHERE merchant_id = @merchant_id::TEXT AND mode = @mode::TEXT AND subject = @subject::TEXT AND reason = @reason::TEXT
    AND (fact_id = @fact_id::TEXT OR left(fact_id, length(@fact_id::TEXT) + 2) = @fact_id::TEXT || ' #')
HAVING bool_and(resolved_at IS NOT NULL AND resolved_at < @at::TIMESTAMPTZ)
ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING;

-- name: CountExceptions :many
SELECT reason, count(*) AS entries FROM exceptions
WHERE resolved_at IS NULL
GROUP BY reason
ORDER BY reason;

-- name: OpenExceptions :many
SELECT merchant_id, mode, subject, reason, fact_id, provider, detail, at FROM exceptions
WHERE resolved_at IS NULL
ORDER BY at DESC
LIMIT @most;

-- name: ExceptionsOf :many
SELECT merchant_id, mode, subject, reason, fact_id, provider, detail, at, resolved_at, resolved_by, resolution FROM exceptions
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject
ORDER BY at, reason, fact_id;

-- name: ResolveException :execrows
UPDATE exceptions SET resolved_at = @now, resolved_by = @operator::TEXT, resolution = @resolution::TEXT
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = @reason AND fact_id = @fact_id
    AND resolved_at IS NULL;

-- name: ResolveExceptions :exec
UPDATE exceptions SET resolved_at = @now::TIMESTAMPTZ, resolved_by = @operator::TEXT, resolution = @resolution::TEXT
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = ANY(@reasons::TEXT[]) AND resolved_at IS NULL;
