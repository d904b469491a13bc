-- +goose NO TRANSACTION
-- +goose Up
-- By age: what is too old is removed, and what an operator knows by its id alone is found.
CREATE INDEX IF NOT EXISTS request_log_age ON request_log (shard, span);
