-- +goose NO TRANSACTION
-- +goose Up
-- What operators say of money, by a word of their own (overrides) or to be confirmed by
-- another one (assignments). What one of them says alone is summed. A row is a person's
-- word, so a merchant has few.
CREATE TABLE IF NOT EXISTS claims (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    subject TEXT NOT NULL,
    movement_id UUID NOT NULL,
    payment TEXT NOT NULL, -- '' for none
    operator TEXT NOT NULL,
    amount INT8 NOT NULL,
    reason TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    alone BOOL NOT NULL,
    confirmed_by TEXT,
    confirmed_at TIMESTAMPTZ,
    CONSTRAINT claims_pkey PRIMARY KEY (merchant_id, mode, subject),
    CONSTRAINT claims_operators CHECK (confirmed_by IS NULL OR confirmed_by <> operator AND NOT alone)
);
