-- +goose NO TRANSACTION

-- +goose Up
-- A collection is paid by one payment at most.
CREATE UNIQUE INDEX IF NOT EXISTS settlements_movement ON settlements (movement_id) WHERE movement_id IS NOT NULL;

-- +goose Down
DROP INDEX IF EXISTS settlements_movement;
