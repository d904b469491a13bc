-- +goose NO TRANSACTION
-- +goose Up
-- A number of 16 bits that a gateway is named by where there is no room for its id.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS tag INT8 NOT NULL DEFAULT 0;
