-- +goose NO TRANSACTION
-- +goose Up
-- When a gateway said that it ends. One that was killed says nothing.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS ended_at TIMESTAMPTZ;
