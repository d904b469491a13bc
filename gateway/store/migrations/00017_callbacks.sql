-- +goose NO TRANSACTION

-- +goose Up
-- One row for each event of a movement, written in the commit that made it. A
-- row without a URL is only read by its merchant.
CREATE TABLE IF NOT EXISTS callbacks (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    event_id UUID NOT NULL,
    movement_id UUID NOT NULL,
    sequence INT4 NOT NULL,
    event TEXT NOT NULL,
    reference TEXT NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INT4 NOT NULL, -- of this series; a delivery sent again begins a new one
    tries INT4 NOT NULL DEFAULT 0, -- of all series
    created_at TIMESTAMPTZ NOT NULL,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    CONSTRAINT callbacks_pkey PRIMARY KEY (merchant_id, mode, event_id),
    CONSTRAINT callbacks_state CHECK (state IN ('none', 'waiting', 'delivered', 'gone', 'dead'))
);

-- +goose Down
DROP TABLE IF EXISTS callbacks;
