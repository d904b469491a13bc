-- +goose NO TRANSACTION

-- +goose Up
-- Finds the transfers of an amount that a row of their account's mutations may be.
CREATE INDEX IF NOT EXISTS movements_paid_out ON movements (merchant_id, mode, amount, created_at) WHERE kind = 'transfer';
