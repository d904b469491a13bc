-- +goose NO TRANSACTION

-- +goose Up
-- When the provider ended the movement's call with an error of its own: nothing of it
-- is under way any more, so that it is not found is proof sooner.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS errored_at TIMESTAMPTZ;
