-- +goose NO TRANSACTION

-- +goose Up
-- Lists the open exceptions of all merchants, the newest first. A digit of the
-- merchant's digest stands first, because times rise.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS exceptions_listed;
CREATE INDEX CONCURRENTLY IF NOT EXISTS exceptions_listed ON exceptions (left(md5(merchant_id), 1), at) WHERE resolved_at IS NULL;
