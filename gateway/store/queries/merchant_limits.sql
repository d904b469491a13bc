-- name: LimitsOf :many
SELECT merchant_id, name, rate_per_second, burst, quota, reason, set_by, set_at, expires_at,
    markup, amount, transfers, repeat_within FROM merchant_limits
WHERE merchant_id = ANY(@ids::TEXT[])
ORDER BY merchant_id, name;

-- name: PutLimit :exec
INSERT INTO merchant_limits (merchant_id, name, rate_per_second, burst, quota, reason, set_by, set_at, expires_at,
    markup, amount, transfers, repeat_within)
VALUES (@merchant_id, @name, @rate_per_second, @burst, sqlc.narg(quota), @reason, @set_by, @set_at, sqlc.narg(expires_at),
    sqlc.narg(markup), sqlc.narg(amount), sqlc.narg(transfers), sqlc.narg(repeat_within))
ON CONFLICT (merchant_id, name) DO UPDATE SET
    rate_per_second = excluded.rate_per_second, burst = excluded.burst, quota = excluded.quota,
    reason = excluded.reason, set_by = excluded.set_by, set_at = excluded.set_at, expires_at = excluded.expires_at,
    markup = excluded.markup, amount = excluded.amount, transfers = excluded.transfers, repeat_within = excluded.repeat_within;

-- name: DeleteLimit :execrows
DELETE FROM merchant_limits WHERE merchant_id = @merchant_id AND name = @name;
