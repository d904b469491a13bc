-- name: MerchantByID :one
SELECT merchant_id, name, tier, status, labels, version, created_at FROM merchants
WHERE merchant_id = @merchant_id;

-- name: MerchantsByID :many
SELECT merchant_id, name, tier, status, labels, version, created_at FROM merchants
WHERE merchant_id = ANY(@ids::TEXT[]);

-- name: MerchantsAfter :many
-- The platform is no merchant: its row only carries its connections.
SELECT merchant_id, name, tier, status, labels, version, created_at FROM merchants
WHERE merchant_id > @after AND merchant_id <> 'platform'
ORDER BY merchant_id
LIMIT @most;

-- name: MerchantsByTier :many
SELECT tier, count(*) AS merchants FROM merchants
WHERE merchant_id <> 'platform'
GROUP BY tier;

-- name: MerchantsThere :many
SELECT merchant_id FROM merchants
WHERE merchant_id = ANY(@ids::TEXT[]) AND merchant_id <> 'platform';

-- name: MerchantIDByKey :one
SELECT merchant_id FROM api_keys WHERE key_id = @key_id;

-- name: MerchantIDByNotifyToken :one
SELECT merchant_id FROM connections WHERE notify_token = @notify_token AND provider = @provider;

-- name: KeysOf :many
SELECT merchant_id, mode, key_id, hash, scopes, ips, created_at, expires_at, revoked_at, name FROM api_keys
WHERE merchant_id = @merchant_id
ORDER BY key_id;

-- name: ConnectionsOf :many
SELECT merchant_id, mode, provider, owner, version, sealed, notify_token FROM connections
WHERE merchant_id = @merchant_id
ORDER BY mode, provider;

-- name: CallbackSecretsOf :many
SELECT merchant_id, mode, sealed, next_sealed, next_signs, url FROM callback_secrets
WHERE merchant_id = @merchant_id
ORDER BY mode;

-- name: MerchantsChangedSince :many
SELECT merchant_id, version FROM merchants
WHERE change_shard = ANY(@shards::INT4[]) AND changed_at >= @since;

-- name: InsertMerchant :exec
INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
VALUES (@merchant_id, @name, @tier, @status, @labels, 1, @now, @now, @change_shard);

-- name: TouchMerchant :one
-- Every change of an account ends here, so that each replica learns of it.
UPDATE merchants SET version = version + 1, changed_at = @now
WHERE merchant_id = @merchant_id
RETURNING version;

-- name: SetMerchantStatus :execrows
UPDATE merchants SET status = @status WHERE merchant_id = @merchant_id;

-- name: SetMerchantTier :execrows
UPDATE merchants SET tier = @tier WHERE merchant_id = @merchant_id;

-- name: SetMerchantLabels :execrows
UPDATE merchants SET labels = @labels WHERE merchant_id = @merchant_id;

-- name: InsertKey :exec
INSERT INTO api_keys (merchant_id, mode, key_id, hash, scopes, ips, created_at, expires_at, revoked_at, name)
VALUES (@merchant_id, @mode, @key_id, @hash, @scopes, @ips, @created_at, sqlc.narg(expires_at), sqlc.narg(revoked_at), @name);

-- name: RenameKey :execrows
UPDATE api_keys SET name = @name WHERE merchant_id = @merchant_id AND mode = @mode AND key_id = @key_id;

-- name: EndKey :execrows
-- An end is never taken back or put off, whatever the caller had read before: a
-- rotation that raced a revocation would bring the key to life again. And what
-- was revoked is not rotated.
UPDATE api_keys SET
    expires_at = COALESCE(LEAST(expires_at, sqlc.narg(expires_at)::TIMESTAMPTZ), expires_at, sqlc.narg(expires_at)::TIMESTAMPTZ),
    revoked_at = COALESCE(revoked_at, sqlc.narg(revoked_at)::TIMESTAMPTZ)
WHERE merchant_id = @merchant_id AND mode = @mode AND key_id = @key_id
    AND (revoked_at IS NULL OR sqlc.narg(revoked_at)::TIMESTAMPTZ IS NOT NULL);

-- name: PutConnection :one
-- A changed connection keeps its notification route, which stands in the
-- provider's dashboard. One that was removed begins with a version that it never had:
-- by versions plugins, breakers, proofs and kept answers know whose credentials they are of.
-- One that is there may stay.
INSERT INTO connections (merchant_id, mode, provider, owner, version, sealed, notify_token)
VALUES (@merchant_id, @mode, @provider, @owner, 1 + COALESCE((
    SELECT r.version FROM removed_connections AS r WHERE r.merchant_id = @merchant_id AND r.mode = @mode AND r.provider = @provider
), 0), @sealed, @notify_token)
ON CONFLICT (merchant_id, mode, provider) DO UPDATE SET
    owner = excluded.owner, version = connections.version + 1, sealed = excluded.sealed
WHERE @replaces::BOOL
RETURNING version, notify_token;

-- name: PutCallbackSecret :exec
INSERT INTO callback_secrets (merchant_id, mode, sealed, next_sealed, next_signs, url)
VALUES (@merchant_id, @mode, @sealed, sqlc.narg(next_sealed), @next_signs, @url)
ON CONFLICT (merchant_id, mode) DO UPDATE SET
    sealed = excluded.sealed, next_sealed = excluded.next_sealed, next_signs = excluded.next_signs, url = excluded.url;

-- name: MerchantsNamed :many
-- By a part of the name, in whatever capitals: reads all merchants.
SELECT merchant_id, name FROM merchants
WHERE strpos(lower(name), lower(@text::TEXT)) > 0
ORDER BY name, merchant_id
LIMIT @most;
