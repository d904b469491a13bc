-- +goose NO TRANSACTION

-- +goose Up
ALTER TABLE movements ADD COLUMN IF NOT EXISTS delivered BOOL NOT NULL DEFAULT FALSE;

-- +goose Down
ALTER TABLE movements DROP COLUMN IF EXISTS delivered;
