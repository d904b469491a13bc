-- +goose NO TRANSACTION

-- +goose Up
-- What the transactions of an account came to when a day of the ledger ended: those
-- with a time before it that were not written late. A day without transactions has
-- none. Rows are only added.
CREATE TABLE IF NOT EXISTS ledger_snapshots (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    provider TEXT NOT NULL,
    transactions INT8 NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    margin INT8 NOT NULL,
    cost INT8 NOT NULL,
    deposit INT8 NOT NULL,
    adjustments INT8 NOT NULL,
    verified_at TIMESTAMPTZ,
    CONSTRAINT ledger_snapshots_pkey PRIMARY KEY (merchant_id, mode, until, provider),
    CONSTRAINT ledger_snapshots_balanced CHECK (available + held + margin + cost + deposit + adjustments = 0)
);
