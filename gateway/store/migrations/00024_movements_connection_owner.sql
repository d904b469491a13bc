-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS connection_owner TEXT NOT NULL DEFAULT 'merchant';

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS connection_owner;
