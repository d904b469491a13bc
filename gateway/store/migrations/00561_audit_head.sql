-- +goose NO TRANSACTION
-- +goose Up
-- Where audit_chain ends, and which of its links the sink has.
CREATE TABLE IF NOT EXISTS audit_head (
    name TEXT NOT NULL,
    sequence INT8 NOT NULL,
    hash BYTEA NOT NULL,
    mac BYTEA NOT NULL,
    sent INT8 NOT NULL DEFAULT 0,
    CONSTRAINT audit_head_pkey PRIMARY KEY (name)
);
