-- +goose NO TRANSACTION

-- +goose Up
-- Double entry: only ever added to. The key lets each attempt of a movement begin,
-- end and be reversed once.
CREATE TABLE IF NOT EXISTS ledger_transactions (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    subject UUID NOT NULL,
    attempt INT4 NOT NULL,
    step INT2 NOT NULL,
    kind TEXT NOT NULL,
    provider TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    margin INT8 NOT NULL,
    cost INT8 NOT NULL,
    deposit INT8 NOT NULL,
    adjustments INT8 NOT NULL,
    CONSTRAINT ledger_transactions_pkey PRIMARY KEY (merchant_id, mode, subject, attempt, step),
    CONSTRAINT ledger_transactions_balanced CHECK (available + held + margin + cost + deposit + adjustments = 0),
    CONSTRAINT ledger_transactions_kind CHECK (
        step = 1 AND kind IN ('charge', 'hold', 'credit', 'debit')
        OR step = 2 AND kind IN ('cost', 'refund', 'capture', 'release')
        OR step = 3 AND kind = 'reversal'
    )
);

-- +goose Down
DROP TABLE IF EXISTS ledger_transactions;
