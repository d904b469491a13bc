-- +goose NO TRANSACTION
-- +goose Up
-- What has arrived where that is not the amount asked for, else 0.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS paid_amount INT8 NOT NULL DEFAULT 0;
