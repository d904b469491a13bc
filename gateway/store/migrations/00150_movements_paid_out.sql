-- +goose NO TRANSACTION

-- +goose Up
-- Finds the transfers of an amount that a row of their account's mutations may be.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS movements_paid_out;
CREATE INDEX CONCURRENTLY IF NOT EXISTS movements_paid_out ON movements (merchant_id, mode, amount, created_at) WHERE kind = 'transfer';
