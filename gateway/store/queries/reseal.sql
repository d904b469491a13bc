-- name: AccountsAfter :many
-- The platform's row is one of them: it has connections, too.
SELECT merchant_id FROM merchants
WHERE merchant_id > @after
ORDER BY merchant_id
LIMIT @most;

-- name: SealedConnections :many
SELECT merchant_id, mode, provider, sealed FROM connections
WHERE merchant_id > @after AND merchant_id <= @last
ORDER BY merchant_id, mode, provider;

-- name: SealedCallbackSecrets :many
SELECT merchant_id, mode, sealed, next_sealed FROM callback_secrets
WHERE merchant_id > @after AND merchant_id <= @last
ORDER BY merchant_id, mode;

-- name: ResealConnection :execrows
-- The version stays: these are the same credentials.
UPDATE connections SET sealed = @becomes
WHERE merchant_id = @merchant_id AND mode = @mode AND provider = @provider AND sealed = @was;

-- name: ResealCallbackSecret :execrows
UPDATE callback_secrets SET sealed = @becomes, next_sealed = sqlc.narg(next_becomes)
WHERE merchant_id = @merchant_id AND mode = @mode AND sealed = @was
    AND next_sealed IS NOT DISTINCT FROM sqlc.narg(next_was)::BYTEA;
