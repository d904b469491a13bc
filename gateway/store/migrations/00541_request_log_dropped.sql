-- +goose NO TRANSACTION
-- +goose Up
-- How many calls of a merchant were not kept, without reading those that were.
CREATE INDEX IF NOT EXISTS request_log_dropped ON request_log (merchant_id, mode, span, dropped) WHERE dropped > 0;
