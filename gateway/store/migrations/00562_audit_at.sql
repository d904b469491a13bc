-- +goose NO TRANSACTION
-- +goose Up
-- The entries of all, in the order of their time.
DROP INDEX CONCURRENTLY IF EXISTS audit_at;
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_at ON audit (at, audit_id);
