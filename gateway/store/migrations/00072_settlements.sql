-- +goose NO TRANSACTION

-- +goose Up
-- Payments that an account's reports tell of, one row each, whatever their order
-- and however often they are told: paid when the row that pays was read, reversed
-- when one that takes it back was, differs when they do not agree.
CREATE TABLE IF NOT EXISTS settlements (
    account_id UUID NOT NULL,
    payment TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    amount INT8 NOT NULL,
    currency TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    paid BOOL NOT NULL,
    reversed_at TIMESTAMPTZ,
    differs BOOL NOT NULL,
    data TEXT NOT NULL,
    entered_at TIMESTAMPTZ NOT NULL,
    state TEXT NOT NULL,
    movement_id UUID,
    operator TEXT NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT settlements_pkey PRIMARY KEY (account_id, payment),
    CONSTRAINT settlements_state CHECK (state IN ('new', 'matched', 'paid', 'reversed', 'unmatched', 'ambiguous', 'again')),
    CONSTRAINT settlements_pays CHECK ((movement_id IS NULL) OR state IN ('matched', 'paid', 'reversed'))
);

-- +goose Down
DROP TABLE IF EXISTS settlements;
