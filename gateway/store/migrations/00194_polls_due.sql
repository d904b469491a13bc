-- +goose NO TRANSACTION

-- +goose Up
-- The id stands last, so that a scan goes on behind any row, also where many are due at
-- one moment.
CREATE INDEX IF NOT EXISTS polls_due ON polls (bucket, due, movement_id);
