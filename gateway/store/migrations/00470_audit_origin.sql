-- +goose NO TRANSACTION
-- +goose Up
-- Where it was done from: a client's address, the command line or the gateway itself.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS origin TEXT NOT NULL DEFAULT '';
