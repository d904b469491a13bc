-- +goose NO TRANSACTION

-- +goose Up
-- When the database wrote an event, by its own clock: the order in which its merchant
-- reads it. Events from before this column have none, and go by created_at.
ALTER TABLE callbacks ADD COLUMN IF NOT EXISTS written_at TIMESTAMPTZ;
