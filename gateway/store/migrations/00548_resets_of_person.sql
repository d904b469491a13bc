-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS resets_person;
CREATE INDEX CONCURRENTLY IF NOT EXISTS resets_person ON resets (person_id);
