-- +goose NO TRANSACTION
-- +goose Up
-- What is added to prices for this merchant, in rupiah.
ALTER TABLE merchant_limits ADD COLUMN IF NOT EXISTS markup INT8 NULL;
