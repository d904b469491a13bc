-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS ledger_transactions_at ON ledger_transactions (merchant_id, mode, at);

-- +goose Down
DROP INDEX IF EXISTS ledger_transactions_at;
