-- +goose NO TRANSACTION

-- +goose Up
-- When an ended delivery was last sent again: its tries go on until that is as old as
-- a new event may get.
ALTER TABLE callbacks ADD COLUMN IF NOT EXISTS resent_at TIMESTAMPTZ;
