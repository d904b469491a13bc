-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS callbacks_written ON callbacks (merchant_id, mode, (COALESCE(written_at, created_at)), event_id);
