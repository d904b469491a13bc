-- +goose NO TRANSACTION
-- +goose Up
-- What an installation has once, and keeps. The key by which references become ids of
-- movements is NULL until the first start that needs it; a row that is missing was
-- lost, and no gateway starts without it.
CREATE TABLE IF NOT EXISTS installation (
    name TEXT NOT NULL,
    sealed BYTEA,
    made_at TIMESTAMPTZ,
    CONSTRAINT installation_pkey PRIMARY KEY (name),
    CONSTRAINT installation_name CHECK (name = 'movement names'),
    CONSTRAINT installation_made CHECK ((sealed IS NULL) = (made_at IS NULL))
);
