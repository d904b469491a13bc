-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS members_person ON members (person_id);
