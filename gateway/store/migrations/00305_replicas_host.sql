-- +goose NO TRANSACTION
-- +goose Up
-- The name of a gateway's machine.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS host TEXT NOT NULL DEFAULT '';
