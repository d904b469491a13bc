-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS name_match BOOL;

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS name_match;
