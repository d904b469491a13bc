-- +goose NO TRANSACTION

-- +goose Up
-- Lists what waits on a merchant's statements, of whom there may be as many as merchants.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS statements_listed;
CREATE INDEX CONCURRENTLY IF NOT EXISTS statements_listed ON statements (merchant_id);
