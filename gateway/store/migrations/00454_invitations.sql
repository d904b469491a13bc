-- +goose NO TRANSACTION
-- +goose Up
-- Links by which people become members, by the SHA-256 of the secret in them. A used one is
-- gone.
CREATE TABLE IF NOT EXISTS invitations (
    hash BYTEA NOT NULL,
    merchant_id TEXT NOT NULL,
    role TEXT NOT NULL,
    email TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT invitations_pkey PRIMARY KEY (hash)
);
