-- +goose NO TRANSACTION
-- +goose Up
-- The chain over all entries, of merchants and of the platform. Rows are only added. The
-- digest is of the entry as it was then, the hash of the link and the hash before it, and the
-- proof what the entry's own MAC said.
CREATE TABLE IF NOT EXISTS audit_chain (
    sequence INT8 NOT NULL,
    audit_id UUID NOT NULL,
    digest BYTEA NOT NULL,
    proof TEXT NOT NULL,
    sealed_at TIMESTAMPTZ NOT NULL,
    hash BYTEA NOT NULL,
    mac BYTEA NOT NULL,
    CONSTRAINT audit_chain_pkey PRIMARY KEY (sequence)
);
