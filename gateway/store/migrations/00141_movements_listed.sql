-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's movements, of any state or of one, the newest first. The state
-- stands first so that no reference is looked up by this index: as long as PostgreSQL
-- has no statistics, it takes an index that begins like the key for as good as the key.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS movements_listed;
CREATE INDEX CONCURRENTLY IF NOT EXISTS movements_listed ON movements (state, merchant_id, mode, kind, created_at, id);
