-- +goose NO TRANSACTION
-- +goose Up
-- Which approval of each plugin is in force, NULL for one that was removed, and which was
-- before it. While replica_id is given that replica alone runs it, and all others the one
-- before. The changes count from 1.
CREATE TABLE IF NOT EXISTS plugin_heads (
    provider TEXT NOT NULL,
    approval_id UUID,
    before_id UUID,
    replica_id UUID,
    changes INT8 NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    changed_by TEXT NOT NULL,
    mac BYTEA NOT NULL,
    CONSTRAINT plugin_heads_pkey PRIMARY KEY (provider)
);
