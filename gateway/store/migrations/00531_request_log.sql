-- +goose NO TRANSACTION
-- +goose Up
-- The calls of a merchant in a mode that ended in a span of ten seconds, masked, packed and
-- sealed. A replica writes a part each time. Terms are the operations and codes in it, each
-- on a line. Dropped counts the merchant's calls that were not kept.
CREATE TABLE IF NOT EXISTS request_log (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    span TIMESTAMPTZ NOT NULL,
    replica_id UUID NOT NULL,
    part INT8 NOT NULL,
    shard INT4 NOT NULL,
    terms TEXT NOT NULL,
    dropped INT4 NOT NULL,
    calls BYTEA NOT NULL,
    CONSTRAINT request_log_pkey PRIMARY KEY (merchant_id, mode, span, replica_id, part)
);
