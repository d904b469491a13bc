-- +goose NO TRANSACTION
-- +goose Up
-- When an API key was used last from each address, to the minute, in place of key_uses.
CREATE TABLE IF NOT EXISTS key_addresses (
    merchant_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    address TEXT NOT NULL,
    used_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT key_addresses_pkey PRIMARY KEY (merchant_id, key_id, address)
);
