-- +goose NO TRANSACTION

-- +goose Up
-- As that of movements: its list is read anew in each statement.
ALTER TABLE callbacks DROP CONSTRAINT IF EXISTS callbacks_state;
