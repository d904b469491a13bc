-- +goose NO TRANSACTION

-- +goose Up
-- Finds the collections that a payment may be for.
CREATE INDEX IF NOT EXISTS movements_collected ON movements (merchant_id, mode, amount, created_at) WHERE kind = 'collection';

-- +goose Down
DROP INDEX IF EXISTS movements_collected;
