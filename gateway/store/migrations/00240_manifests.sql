-- +goose NO TRANSACTION
-- +goose Up
-- The approved manifests that plugins have shown, by their digests. They are what a
-- gateway knows of a plugin's operations while the plugin can't be started.
CREATE TABLE IF NOT EXISTS manifests (
    digest TEXT NOT NULL,
    provider TEXT NOT NULL,
    manifest BYTEA NOT NULL,
    kept_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT manifests_pkey PRIMARY KEY (digest)
);
