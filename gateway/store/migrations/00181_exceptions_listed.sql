-- +goose NO TRANSACTION

-- +goose Up
-- Lists the open exceptions of all merchants, the newest first. A digit of the
-- merchant's digest stands first, because times rise.
CREATE INDEX IF NOT EXISTS exceptions_listed ON exceptions (left(md5(merchant_id), 1), at) WHERE resolved_at IS NULL;
