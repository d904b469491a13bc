-- +goose NO TRANSACTION

-- +goose Up
-- How far an account's reports were read. The first merchant that collects on an
-- account owns it: nobody else's reports may say that its sales were paid.
CREATE TABLE IF NOT EXISTS statements (
    account_id UUID NOT NULL,
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    cursor TEXT NOT NULL,
    through TIMESTAMPTZ NOT NULL,
    asked_at TIMESTAMPTZ,
    CONSTRAINT statements_pkey PRIMARY KEY (account_id)
);

-- +goose Down
DROP TABLE IF EXISTS statements;
