-- +goose NO TRANSACTION
-- +goose Up
-- The money of a success that went back, each return once: JSON. Of a row of a gateway of
-- before, reversed_at alone says that all of it did.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS returns TEXT NULL;
