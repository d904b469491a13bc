-- +goose NO TRANSACTION

-- +goose Up
-- How a payment was paid, in the provider's words: '' where nobody tells.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS channel TEXT NOT NULL DEFAULT '';
