-- +goose NO TRANSACTION

-- +goose Up
-- The default stamps what earlier binaries write, too.
ALTER TABLE ledger_transactions ALTER COLUMN written_at SET DEFAULT clock_timestamp();
