-- +goose NO TRANSACTION
-- +goose Up
-- The entries that wait for their link.
DROP INDEX CONCURRENTLY IF EXISTS audit_unsealed;
CREATE INDEX CONCURRENTLY IF NOT EXISTS audit_unsealed ON audit (at, audit_id) WHERE sequence IS NULL;
