-- name: PutKeyUse :exec
INSERT INTO key_uses (merchant_id, key_id, used_at, address) VALUES (@merchant_id, @key_id, @used_at, @address)
ON CONFLICT (merchant_id, key_id) DO UPDATE SET used_at = excluded.used_at, address = excluded.address
WHERE key_uses.used_at < excluded.used_at;

-- name: KeyUses :many
SELECT key_id, used_at, address FROM key_uses WHERE merchant_id = @merchant_id;
