-- +goose NO TRANSACTION

-- +goose Up
-- The shard stands first so that changes do not all meet at the index's end.
CREATE INDEX IF NOT EXISTS merchants_changed ON merchants (change_shard, changed_at);

-- +goose Down
DROP INDEX IF EXISTS merchants_changed;
