-- +goose NO TRANSACTION
-- +goose Up
-- The version of a gateway's program.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS binary_version TEXT NOT NULL DEFAULT '';
