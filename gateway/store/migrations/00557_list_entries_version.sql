-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS list_entries_version ON list_entries (version, list, digest);
