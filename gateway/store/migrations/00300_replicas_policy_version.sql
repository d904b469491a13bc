-- +goose NO TRANSACTION
-- +goose Up
-- The policy version that a gateway runs; '' for one of before, which follows none.
ALTER TABLE replicas ADD COLUMN IF NOT EXISTS policy_version TEXT NOT NULL DEFAULT '';
