-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS connection_account TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS connection_account;
