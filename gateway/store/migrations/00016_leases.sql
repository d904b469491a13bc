-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS leases (
    queue TEXT NOT NULL,
    bucket INT4 NOT NULL,
    holder TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT leases_pkey PRIMARY KEY (queue, bucket)
);

-- +goose Down
DROP TABLE IF EXISTS leases;
