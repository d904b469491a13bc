-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's movements, of any state or of one, the newest first.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS movements_listed;
CREATE INDEX CONCURRENTLY IF NOT EXISTS movements_listed ON movements (merchant_id, mode, kind, state, created_at, id);
