-- +goose NO TRANSACTION

-- +goose Up
-- As those of movements and callbacks: its lists are read anew in each statement. That
-- a transaction balances is still checked.
ALTER TABLE ledger_transactions DROP CONSTRAINT IF EXISTS ledger_transactions_kind;
