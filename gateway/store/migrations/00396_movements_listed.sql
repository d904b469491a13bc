-- +goose NO TRANSACTION

-- +goose Up
-- The index by the state itself, which each transition wrote.
DROP INDEX CONCURRENTLY IF EXISTS movements_listed;
