-- +goose NO TRANSACTION
-- +goose Up
-- Who may sign in to the consoles. The password is kept as argon2id's text, the TOTP secret
-- sealed; totp_step is the last time step whose code was used. The epoch ends all sessions
-- by rising.
CREATE TABLE IF NOT EXISTS people (
    person_id UUID NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    password TEXT NOT NULL,
    totp BYTEA NOT NULL,
    totp_step INT8 NOT NULL,
    epoch INT8 NOT NULL,
    failures INT8 NOT NULL,
    failed_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT people_pkey PRIMARY KEY (person_id),
    CONSTRAINT people_email UNIQUE (email)
);
