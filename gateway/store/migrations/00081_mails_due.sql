-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS mails_due ON mails (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- +goose Down
DROP INDEX IF EXISTS mails_due;
