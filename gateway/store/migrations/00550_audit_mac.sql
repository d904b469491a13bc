-- +goose NO TRANSACTION
-- +goose Up
-- Made in the act's own transaction; NULL in entries of gateways before it.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS mac BYTEA NULL;
