-- +goose NO TRANSACTION
-- +goose Up
-- The restores of this database that gateways were told of. While one is not opened, no
-- gateway moves money or works by itself. Since is the last trace of a gateway before
-- it, NULL where there is none.
CREATE TABLE IF NOT EXISTS recoveries (
    recovery_id UUID NOT NULL,
    begun_at TIMESTAMPTZ NOT NULL,
    since TIMESTAMPTZ,
    opened_at TIMESTAMPTZ,
    opened_by TEXT,
    CONSTRAINT recoveries_pkey PRIMARY KEY (recovery_id),
    CONSTRAINT recoveries_opened CHECK ((opened_at IS NULL) = (opened_by IS NULL))
);
