-- +goose NO TRANSACTION
-- +goose Up
-- The mail by which an invitation was sent, NULL where its link was handed over otherwise.
ALTER TABLE invitations ADD COLUMN IF NOT EXISTS mail_id UUID;
