-- name: AddAttention :execrows
INSERT INTO attention (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
VALUES (@merchant_id, @mode, @subject, @reason, @fact_id, @provider, @detail, @at)
ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING;

-- name: OpenAttention :many
SELECT merchant_id, mode, subject, reason, fact_id, provider, detail, at FROM attention
WHERE resolved_at IS NULL
ORDER BY at DESC
LIMIT @most;

-- name: ResolveAttention :execrows
UPDATE attention SET resolved_at = @now, resolved_by = @operator::TEXT, resolution = @resolution::TEXT
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject AND reason = @reason AND fact_id = @fact_id
    AND resolved_at IS NULL;
