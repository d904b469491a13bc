-- +goose NO TRANSACTION

-- +goose Up
-- Built beside the writes of older replicas.
DROP INDEX CONCURRENTLY IF EXISTS ledger_adjustments_requested;
CREATE INDEX CONCURRENTLY IF NOT EXISTS ledger_adjustments_requested ON ledger_adjustments (merchant_id, mode, requested_by, requested_at);
