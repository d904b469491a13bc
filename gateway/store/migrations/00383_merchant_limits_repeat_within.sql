-- +goose NO TRANSACTION
-- +goose Up
-- For how many seconds equal transfers without a reference are one.
ALTER TABLE merchant_limits ADD COLUMN IF NOT EXISTS repeat_within INT8 NULL;
