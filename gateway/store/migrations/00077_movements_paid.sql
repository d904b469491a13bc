-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS paid_at TIMESTAMPTZ;

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS paid_at;
