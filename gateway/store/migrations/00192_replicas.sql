-- +goose NO TRANSACTION
-- +goose Up
-- The gateways that run, or have run, on this database. Each writes its row whenever it
-- is asked whether it is ready, so that what it says is true of writes too.
CREATE TABLE IF NOT EXISTS replicas (
    replica_id UUID NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT replicas_pkey PRIMARY KEY (replica_id)
);
