-- +goose NO TRANSACTION
-- +goose Up
-- Tokens of operators, by their SHA-256; a token itself is not kept. An operator has
-- several during a rotation's overlap. The MAC is over all of it, so that who writes the
-- database makes nobody an operator.
CREATE TABLE IF NOT EXISTS operator_tokens (
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    inputs BOOL NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    mac BYTEA NOT NULL,
    CONSTRAINT operator_tokens_pkey PRIMARY KEY (hash)
);
