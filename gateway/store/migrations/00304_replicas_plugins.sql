-- +goose NO TRANSACTION
-- +goose Up
-- The SHA-256 of each plugin that a gateway runs, by provider, as a JSON object.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS plugins TEXT NOT NULL DEFAULT '{}';
