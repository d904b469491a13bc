-- +goose NO TRANSACTION
-- +goose Up
-- How often it was done, where one entry stands for many.
ALTER TABLE audit ADD COLUMN IF NOT EXISTS times INT8 NOT NULL DEFAULT 1;
