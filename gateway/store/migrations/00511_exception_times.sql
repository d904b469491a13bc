-- +goose NO TRANSACTION
-- +goose Up
-- How often an exception has come that is counted: a notification that is refused again.
ALTER TABLE exceptions ADD COLUMN IF NOT EXISTS times INT8 NOT NULL DEFAULT 1;
