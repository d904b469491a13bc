-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS sessions_expiry ON sessions (expires_at);
