-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS ledger_adjustments (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    reference TEXT NOT NULL,
    id UUID NOT NULL,
    amount INT8 NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL,
    decided_by TEXT,
    decided_at TIMESTAMPTZ,
    CONSTRAINT ledger_adjustments_pkey PRIMARY KEY (merchant_id, mode, reference),
    CONSTRAINT ledger_adjustments_amount CHECK (amount <> 0),
    CONSTRAINT ledger_adjustments_state CHECK (state IN ('posted', 'waiting', 'rejected')),
    CONSTRAINT ledger_adjustments_operators CHECK (decided_by IS NULL OR decided_by <> requested_by)
);

-- +goose Down
DROP TABLE IF EXISTS ledger_adjustments;
