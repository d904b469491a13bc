-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's movements that are open, and those that have ended in a state, the
-- newest first. The end stands first, so that no key is looked up by it.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS movements_by_end;
CREATE INDEX CONCURRENTLY IF NOT EXISTS movements_by_end ON movements (ended, merchant_id, mode, kind, created_at, id);
