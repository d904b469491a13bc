-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS movements_decision_id ON movements (decision_id) WHERE decision_id <> '';

-- +goose Down
DROP INDEX IF EXISTS movements_decision_id;
