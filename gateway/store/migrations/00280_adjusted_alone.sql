-- +goose NO TRANSACTION

-- +goose Up
-- How often an operator has credited or debited a merchant without a second one. Who
-- posts alone counts one more than was there when the sum of a day was read, so that two
-- at once can't both fit below the limit.
CREATE TABLE IF NOT EXISTS adjusted_alone (
    requested_by TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    times INT8 NOT NULL,
    CONSTRAINT adjusted_alone_pkey PRIMARY KEY (requested_by, merchant_id, mode)
);
