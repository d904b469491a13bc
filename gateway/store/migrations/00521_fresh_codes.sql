-- +goose NO TRANSACTION
-- +goose Up
-- The recovery codes that somebody has not kept yet, sealed; NULL once they have.
ALTER TABLE people ADD COLUMN IF NOT EXISTS fresh_codes BYTEA;
