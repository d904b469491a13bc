-- +goose NO TRANSACTION

-- +goose Up
-- What is known of asking a provider, one row for each movement of which there is
-- something left to ask: asking never rewrites the movement's own, wide row. Whoever
-- changes a movement's state takes this row first, as it was seen: the version counts
-- its changes, and an attempt that takes a freed reference has a row of its own. The
-- account is the queue's: of which upstream, and of whose account there.
CREATE TABLE IF NOT EXISTS polls (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    version INT8 NOT NULL,
    account TEXT NOT NULL,
    bucket INT4 NOT NULL,
    due TIMESTAMPTZ,
    asked_at TIMESTAMPTZ,
    misses INT4 NOT NULL,
    CONSTRAINT polls_pkey PRIMARY KEY (movement_id)
);
