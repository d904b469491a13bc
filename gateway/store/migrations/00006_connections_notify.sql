-- +goose NO TRANSACTION

-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS connections_notify ON connections (notify_token);

-- +goose Down
DROP INDEX IF EXISTS connections_notify;
