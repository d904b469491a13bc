-- +goose NO TRANSACTION

-- +goose Up
-- The payable amounts of an account that are taken, one row each. Taking one that
-- is not free yet breaks the constraint: the amount of an open sale is nobody
-- else's, whatever two replicas have seen at once.
CREATE TABLE IF NOT EXISTS collection_slots (
    account_id UUID NOT NULL,
    amount INT8 NOT NULL,
    movement_id UUID NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL,
    free_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT collection_slots_pkey PRIMARY KEY (account_id, amount),
    CONSTRAINT collection_slots_free CHECK (taken_at < free_at)
);

-- +goose Down
DROP TABLE IF EXISTS collection_slots;
