-- +goose NO TRANSACTION

-- +goose Up
-- Finds the newest of those that were made without a reference.
CREATE INDEX IF NOT EXISTS movements_stem ON movements (merchant_id, mode, stem) WHERE stem <> '';

-- +goose Down
DROP INDEX IF EXISTS movements_stem;
