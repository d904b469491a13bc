-- +goose NO TRANSACTION
-- +goose Up
-- The SHA-256 of each recovery code that was not used yet.
CREATE TABLE IF NOT EXISTS recovery_codes (
    person_id UUID NOT NULL,
    hash BYTEA NOT NULL,
    CONSTRAINT recovery_codes_pkey PRIMARY KEY (person_id, hash)
);
