-- name: OperatorTokenByHash :one
SELECT hash, name, role, inputs, created_by, created_at, expires_at, revoked_at, mac FROM operator_tokens
WHERE hash = @hash;

-- name: OperatorTokens :many
-- By name, of each the newest first.
SELECT hash, name, role, inputs, created_by, created_at, expires_at, revoked_at, mac FROM operator_tokens
ORDER BY name, created_at DESC, hash;

-- name: OperatorTokensNamed :many
-- The newest first.
SELECT hash, name, role, inputs, created_by, created_at, expires_at, revoked_at, mac FROM operator_tokens
WHERE name = @name
ORDER BY created_at DESC, hash;

-- name: InsertOperatorToken :exec
INSERT INTO operator_tokens (hash, name, role, inputs, created_by, created_at, expires_at, mac)
VALUES (@hash, @name, @role, @inputs, @created_by, @created_at, sqlc.narg(expires_at), @mac);

-- name: EndOperatorToken :execrows
-- The MAC that was read tells of a change meanwhile.
UPDATE operator_tokens SET expires_at = sqlc.narg(expires_at), revoked_at = sqlc.narg(revoked_at), mac = @mac
WHERE hash = @hash AND mac = @was;

-- name: ResealOperatorToken :execrows
UPDATE operator_tokens SET mac = @becomes WHERE hash = @hash AND mac = @was;
