-- +goose NO TRANSACTION

-- +goose Up
-- What merchants have: the sum of their transactions, kept beside them so that
-- the constraint can refuse. The platform's accounts have no row: nothing is
-- refused by them, and every order would wait for it.
CREATE TABLE IF NOT EXISTS ledger_balances (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    CONSTRAINT ledger_balances_pkey PRIMARY KEY (merchant_id, mode),
    CONSTRAINT ledger_balances_available CHECK (available >= 0),
    CONSTRAINT ledger_balances_held CHECK (held >= 0)
);

-- +goose Down
DROP TABLE IF EXISTS ledger_balances;
