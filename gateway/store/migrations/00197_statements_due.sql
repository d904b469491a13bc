-- +goose NO TRANSACTION

-- +goose Up
-- Built beside the writes of older replicas.
DROP INDEX CONCURRENTLY IF EXISTS statements_due;
CREATE INDEX CONCURRENTLY IF NOT EXISTS statements_due ON statements (due_bucket, due_at);
