-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's callbacks that are not delivered, the newest first. Without the
-- delivered ones a delivery does not write it.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS callbacks_undelivered;
CREATE INDEX CONCURRENTLY IF NOT EXISTS callbacks_undelivered ON callbacks (merchant_id, mode, state, created_at, event_id)
    WHERE state IN ('waiting', 'gone', 'dead');
