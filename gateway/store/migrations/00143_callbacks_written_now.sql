-- +goose NO TRANSACTION

-- +goose Up
-- The default stamps what earlier binaries write, too.
ALTER TABLE callbacks ALTER COLUMN written_at SET DEFAULT clock_timestamp();
