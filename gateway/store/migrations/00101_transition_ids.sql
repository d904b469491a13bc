-- +goose NO TRANSACTION

-- +goose Up
-- The id of the transition that wrote the entry, made before it was sent: a commit
-- whose answer was lost is found by it. Entries of before have none.
ALTER TABLE history ADD COLUMN IF NOT EXISTS transition_id UUID;
