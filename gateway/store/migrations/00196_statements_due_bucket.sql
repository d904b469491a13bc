-- +goose NO TRANSACTION

-- +goose Up
-- The queue's bucket. What older gateways have made is in the first.
ALTER TABLE statements ADD COLUMN IF NOT EXISTS due_bucket INT4 NOT NULL DEFAULT 0;
