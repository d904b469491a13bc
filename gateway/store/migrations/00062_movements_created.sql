-- +goose NO TRANSACTION

-- +goose Up
-- Operators find movements by ids of others' (a request's, a provider's) in a span
-- of time: an index for each of these would cost every claim more.
CREATE INDEX IF NOT EXISTS movements_created ON movements (due_bucket, created_at);

-- +goose Down
DROP INDEX IF EXISTS movements_created;
