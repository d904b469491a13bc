-- +goose NO TRANSACTION
-- +goose Up
-- What a merchant calls a key, '' for one that was never named.
ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS name TEXT NOT NULL DEFAULT '';
