-- +goose NO TRANSACTION

-- +goose Up
-- The story of a movement: only ever added to.
CREATE TABLE IF NOT EXISTS movement_events (
    movement_id UUID NOT NULL,
    sequence INT4 NOT NULL,
    event TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    detail TEXT NOT NULL,
    CONSTRAINT movement_events_pkey PRIMARY KEY (movement_id, sequence)
);

-- +goose Down
DROP TABLE IF EXISTS movement_events;
