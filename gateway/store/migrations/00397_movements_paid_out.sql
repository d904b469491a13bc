-- +goose NO TRANSACTION

-- +goose Up
-- Nothing reads by it.
DROP INDEX CONCURRENTLY IF EXISTS movements_paid_out;
