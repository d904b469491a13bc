-- +goose NO TRANSACTION

-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS movements_id ON movements (id);

-- +goose Down
DROP INDEX IF EXISTS movements_id;
