-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS callbacks_due ON callbacks (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- +goose Down
DROP INDEX IF EXISTS callbacks_due;
