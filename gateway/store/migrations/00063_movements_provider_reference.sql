-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS movements_provider_reference ON movements (provider_reference) WHERE provider_reference <> '';

-- +goose Down
DROP INDEX IF EXISTS movements_provider_reference;
