-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS spends TEXT;

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS spends;
