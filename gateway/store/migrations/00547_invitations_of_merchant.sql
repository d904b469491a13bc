-- +goose NO TRANSACTION
-- +goose Up
DROP INDEX CONCURRENTLY IF EXISTS invitations_merchant;
CREATE INDEX CONCURRENTLY IF NOT EXISTS invitations_merchant ON invitations (merchant_id, email);
