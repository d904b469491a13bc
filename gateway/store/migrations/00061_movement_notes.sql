-- +goose NO TRANSACTION

-- +goose Up
-- What a provider said that changed no state, for operators: the same again is
-- counted.
CREATE TABLE IF NOT EXISTS movement_notes (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    event TEXT NOT NULL,
    detail TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    times INT4 NOT NULL,
    CONSTRAINT movement_notes_pkey PRIMARY KEY (movement_id, attempt, event, detail)
);

-- +goose Down
DROP TABLE IF EXISTS movement_notes;
