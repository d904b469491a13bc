-- +goose NO TRANSACTION
-- +goose Up
-- The SHA-256 of each file in a gateway's directory of plugins, as a JSON array.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS plugin_files TEXT NOT NULL DEFAULT '[]';
