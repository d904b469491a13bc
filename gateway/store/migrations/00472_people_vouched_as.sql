-- +goose NO TRANSACTION
-- +goose Up
-- Issuer and subject of the account at an identity provider by which somebody has signed in.
ALTER TABLE people ADD COLUMN IF NOT EXISTS vouched_as TEXT NOT NULL DEFAULT '';
