-- +goose NO TRANSACTION

-- +goose Up
-- Operators may say that an order is to be sent again. The constraint is replaced by a
-- wider one, which refuses nothing that an older gateway writes. Between the two
-- statements there is none.

ALTER TABLE overrides DROP CONSTRAINT IF EXISTS overrides_outcome;

ALTER TABLE overrides ADD CONSTRAINT overrides_outcome CHECK (outcome IN ('success', 'failed', 'resubmit'));
