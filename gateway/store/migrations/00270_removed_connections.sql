-- +goose NO TRANSACTION

-- +goose Up
-- The last version of a connection that was removed: it must not come back with other
-- credentials.
CREATE TABLE IF NOT EXISTS removed_connections (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    version INT8 NOT NULL,
    CONSTRAINT removed_connections_pkey PRIMARY KEY (merchant_id, mode, provider)
);
