-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS settlements_open ON settlements (account_id, payment) WHERE state IN ('new', 'matched');

-- +goose Down
DROP INDEX IF EXISTS settlements_open;
