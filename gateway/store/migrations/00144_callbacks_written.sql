-- +goose NO TRANSACTION

-- +goose Up
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS callbacks_written;
CREATE INDEX CONCURRENTLY IF NOT EXISTS callbacks_written ON callbacks (merchant_id, mode, (COALESCE(written_at, created_at)), event_id);
