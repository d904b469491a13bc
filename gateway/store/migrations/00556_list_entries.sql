-- +goose NO TRANSACTION
-- +goose Up
-- What was taken off stays, so that every replica learns of it.
CREATE TABLE IF NOT EXISTS list_entries (
    list TEXT NOT NULL,
    digest BYTEA NOT NULL,
    masked TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at TIMESTAMPTZ NOT NULL,
    ends_at TIMESTAMPTZ,
    removed BOOL NOT NULL,
    version INT8 NOT NULL,
    CONSTRAINT list_entries_pkey PRIMARY KEY (list, digest)
);
