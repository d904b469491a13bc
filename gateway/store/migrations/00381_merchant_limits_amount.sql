-- +goose NO TRANSACTION
-- +goose Up
-- The most that may go out in a day, in rupiah.
ALTER TABLE merchant_limits ADD COLUMN IF NOT EXISTS amount INT8 NULL;
