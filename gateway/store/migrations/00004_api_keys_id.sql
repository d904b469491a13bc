-- +goose NO TRANSACTION

-- +goose Up
CREATE UNIQUE INDEX IF NOT EXISTS api_keys_id ON api_keys (key_id);

-- +goose Down
DROP INDEX IF EXISTS api_keys_id;
