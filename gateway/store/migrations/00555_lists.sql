-- +goose Up
CREATE TABLE IF NOT EXISTS list_heads (
    id INT8 NOT NULL PRIMARY KEY,
    version INT8 NOT NULL
);

-- +goose StatementBegin
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
    PRIMARY KEY (list, digest)
);
-- +goose StatementEnd

CREATE INDEX IF NOT EXISTS list_entries_version ON list_entries (version, list, digest);
