-- name: PutKeyUse :exec
INSERT INTO key_addresses (merchant_id, key_id, address, used_at) VALUES (@merchant_id, @key_id, @address, @used_at)
ON CONFLICT (merchant_id, key_id, address) DO UPDATE SET used_at = excluded.used_at
WHERE key_addresses.used_at < excluded.used_at;

-- name: ForgetKeyUses :exec
DELETE FROM key_addresses AS old WHERE old.merchant_id = @merchant_id AND old.key_id = @key_id AND (old.used_at < @since
    OR old.address NOT IN (SELECT last.address FROM key_addresses AS last WHERE last.merchant_id = @merchant_id AND last.key_id = @key_id
        ORDER BY last.used_at DESC, last.address LIMIT @most));

-- name: KeyUses :many
SELECT key_id, address, used_at FROM key_addresses WHERE merchant_id = @merchant_id ORDER BY key_id, used_at DESC, address;
