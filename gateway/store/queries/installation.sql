-- name: NameKey :one
SELECT sealed FROM installation WHERE name = 'movement names';

-- name: MakeNameKey :exec
-- Where several start at once, the first one's stands.
UPDATE installation SET sealed = @sealed, made_at = @now
WHERE name = 'movement names' AND sealed IS NULL;

-- name: ResealNameKey :execrows
UPDATE installation SET sealed = @becomes
WHERE name = 'movement names' AND sealed = @was;
