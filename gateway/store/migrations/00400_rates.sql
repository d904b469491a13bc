-- +goose NO TRANSACTION
-- +goose Up
-- A token bucket of a merchant's rate, which all replicas share: what is in it as of a
-- moment by this database's clock, and below zero what was admitted on credit. What did
-- not fit into it of late is spare. The last four columns are the last ask and what it
-- was granted.
CREATE TABLE IF NOT EXISTS rates (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    name TEXT NOT NULL,
    per_second FLOAT8 NOT NULL,
    burst INT8 NOT NULL,
    tokens FLOAT8 NOT NULL,
    as_of TIMESTAMPTZ NOT NULL,
    spare FLOAT8 NOT NULL,
    spare_at TIMESTAMPTZ NOT NULL,
    owed FLOAT8 NOT NULL,
    late FLOAT8 NOT NULL,
    want INT8 NOT NULL,
    granted INT8 NOT NULL,
    CONSTRAINT rates_pkey PRIMARY KEY (merchant_id, mode, name)
);
