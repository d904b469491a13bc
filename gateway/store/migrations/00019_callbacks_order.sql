-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS callbacks_order ON callbacks (merchant_id, mode, created_at, event_id);

-- +goose Down
DROP INDEX IF EXISTS callbacks_order;
