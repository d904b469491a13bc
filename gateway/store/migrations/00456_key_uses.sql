-- +goose NO TRANSACTION
-- +goose Up
-- When and from where an API key was used last, to the minute.
CREATE TABLE IF NOT EXISTS key_uses (
    merchant_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    used_at TIMESTAMPTZ NOT NULL,
    address TEXT NOT NULL,
    CONSTRAINT key_uses_pkey PRIMARY KEY (merchant_id, key_id)
);
