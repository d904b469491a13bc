-- +goose NO TRANSACTION
-- +goose Up
-- What a replica decided in a minute: how many of what (counts, packed), and the inputs
-- of some requests that were refused (sealed). A replica writes a part each time.
CREATE TABLE IF NOT EXISTS decision_log (
    shard INT4 NOT NULL,
    minute TIMESTAMPTZ NOT NULL,
    replica_id UUID NOT NULL,
    part INT8 NOT NULL,
    counts BYTEA NOT NULL,
    inputs BYTEA,
    CONSTRAINT decision_log_pkey PRIMARY KEY (shard, minute, replica_id, part)
);
