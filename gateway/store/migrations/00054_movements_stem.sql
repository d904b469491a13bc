-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS stem TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS stem;
