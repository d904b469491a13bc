-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS merchants (
    merchant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    tier TEXT NOT NULL,
    status TEXT NOT NULL,
    labels TEXT NOT NULL,
    version INT8 NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    change_shard INT4 NOT NULL,
    CONSTRAINT merchants_pkey PRIMARY KEY (merchant_id)
);

-- +goose Down
DROP TABLE IF EXISTS merchants;
