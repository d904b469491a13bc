-- +goose NO TRANSACTION

-- +goose Up
-- When the statement is read next, for all sales of the account. What older gateways have
-- made is due.
ALTER TABLE statements ADD COLUMN IF NOT EXISTS due_at TIMESTAMPTZ NOT NULL DEFAULT '1970-01-01';
