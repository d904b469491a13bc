-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS mails_due_links;
CREATE INDEX CONCURRENTLY IF NOT EXISTS mails_due_links ON mails (due_bucket, due_at) WHERE due_at IS NOT NULL AND not_after IS NOT NULL;
