-- +goose NO TRANSACTION
-- +goose Up
-- Over what an operator asked for and how far it has come; '' for one that no gateway
-- believes.
ALTER TABLE policy_activations ADD COLUMN IF NOT EXISTS mac BYTEA NOT NULL DEFAULT '';
