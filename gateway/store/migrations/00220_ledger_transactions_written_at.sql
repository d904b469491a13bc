-- +goose NO TRANSACTION

-- +goose Up
-- When the database wrote a transaction, by its own clock: one that is written long
-- after its own time is in no snapshot of a day. Those from before this column have
-- none, and were there before the first snapshot.
ALTER TABLE ledger_transactions ADD COLUMN IF NOT EXISTS written_at TIMESTAMPTZ;
