-- +goose NO TRANSACTION

-- +goose Up
-- The transactions that are in no snapshot of a day: almost none.
-- Built beside the writes of older replicas. A build that fails leaves an index on
-- PostgreSQL that nothing reads, so what is left of it is dropped first.
DROP INDEX CONCURRENTLY IF EXISTS ledger_transactions_late;
CREATE INDEX CONCURRENTLY IF NOT EXISTS ledger_transactions_late ON ledger_transactions (merchant_id, mode, at)
    WHERE written_at - at > INTERVAL '1 hour';
