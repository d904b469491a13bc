-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS quote TEXT;

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS quote;
