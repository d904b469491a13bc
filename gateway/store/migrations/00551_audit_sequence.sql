-- +goose NO TRANSACTION
-- +goose Up
-- Of the entry's last link in audit_chain, NULL until it has one.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS sequence INT8 NULL;
