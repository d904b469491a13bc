-- +goose NO TRANSACTION

-- +goose Up
-- The state that a movement has ended in, '' before: what the lists by state go by. Until
-- its end an update of a movement changes nothing that is indexed.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS ended TEXT NOT NULL DEFAULT '';
