-- +goose NO TRANSACTION
-- +goose Up
-- How often the head had changed when the activation was proposed.
ALTER TABLE policy_activations ADD COLUMN IF NOT EXISTS changes INT8 NOT NULL DEFAULT 0;
