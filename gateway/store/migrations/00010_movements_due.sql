-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS movements_due ON movements (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- +goose Down
DROP INDEX IF EXISTS movements_due;
