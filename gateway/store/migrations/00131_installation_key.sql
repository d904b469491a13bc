-- +goose NO TRANSACTION
-- +goose Up
INSERT INTO installation (name) VALUES ('movement names') ON CONFLICT (name) DO NOTHING;
