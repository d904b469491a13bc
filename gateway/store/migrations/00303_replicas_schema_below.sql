-- +goose NO TRANSACTION
-- +goose Up
-- The first schema after it that a gateway does not work on any more.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS schema_below INT8 NOT NULL DEFAULT 0;
