-- +goose NO TRANSACTION
-- +goose Up
-- The language of the mails that somebody gets: of the browser with which they have joined.
ALTER TABLE people ADD COLUMN IF NOT EXISTS language TEXT NOT NULL DEFAULT 'id';
