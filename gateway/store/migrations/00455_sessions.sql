-- +goose NO TRANSACTION
-- +goose Up
-- Sessions of the consoles, by the hash of the cookie's token.
CREATE TABLE IF NOT EXISTS sessions (
    token_hash TEXT NOT NULL,
    content BYTEA NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (token_hash)
);
