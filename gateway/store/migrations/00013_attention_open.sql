-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS attention_open ON attention (merchant_id, at) WHERE resolved_at IS NULL;

-- +goose Down
DROP INDEX IF EXISTS attention_open;
