-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS connections (
    merchant_id TEXT NOT NULL REFERENCES merchants (merchant_id),
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    owner TEXT NOT NULL,
    version INT8 NOT NULL,
    sealed BYTEA NOT NULL,
    notify_token TEXT NOT NULL,
    CONSTRAINT connections_pkey PRIMARY KEY (merchant_id, mode, provider)
);

-- +goose Down
DROP TABLE IF EXISTS connections;
