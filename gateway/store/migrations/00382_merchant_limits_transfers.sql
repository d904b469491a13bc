-- +goose NO TRANSACTION
-- +goose Up
-- How many transfers may go out in a day.
ALTER TABLE merchant_limits ADD COLUMN IF NOT EXISTS transfers INT8 NULL;
