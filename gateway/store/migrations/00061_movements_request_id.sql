-- +goose NO TRANSACTION

-- +goose Up
-- This and the next two let operators find a movement by an id of somebody's.
CREATE INDEX IF NOT EXISTS movements_request_id ON movements (request_id);

-- +goose Down
DROP INDEX IF EXISTS movements_request_id;
