-- +goose NO TRANSACTION
-- +goose Up
-- The first schema that a gateway works on.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS schema_from INT8 NOT NULL DEFAULT 0;
