-- +goose NO TRANSACTION
-- +goose Up
-- Links by which somebody sets a new password. Those that are over are forgotten with the
-- next one, so that there are few.
CREATE TABLE IF NOT EXISTS resets (
    hash BYTEA NOT NULL,
    person_id UUID NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT resets_pkey PRIMARY KEY (hash)
);
