-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS api_keys (
    merchant_id TEXT NOT NULL REFERENCES merchants (merchant_id),
    mode TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hash BYTEA NOT NULL,
    scopes INT4 NOT NULL,
    ips TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    CONSTRAINT api_keys_pkey PRIMARY KEY (merchant_id, mode, key_id)
);

-- +goose Down
DROP TABLE IF EXISTS api_keys;
