-- +goose NO TRANSACTION
-- +goose Up
-- What people may do for a merchant, or, where that is the platform, as operators.
CREATE TABLE IF NOT EXISTS members (
    merchant_id TEXT NOT NULL,
    person_id UUID NOT NULL,
    role TEXT NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    CONSTRAINT members_pkey PRIMARY KEY (merchant_id, person_id)
);
