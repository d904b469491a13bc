-- +goose NO TRANSACTION

-- +goose Up
-- Operators' words on movements whose outcome nobody knows: one for each attempt,
-- proposed by one and confirmed by another, or one's alone.
CREATE TABLE IF NOT EXISTS decisions (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    operator TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    alone BOOL NOT NULL,
    confirmed_by TEXT,
    confirmed_reason TEXT,
    confirmed_at TIMESTAMPTZ,
    CONSTRAINT decisions_pkey PRIMARY KEY (movement_id, attempt),
    CONSTRAINT decisions_outcome CHECK (outcome IN ('success', 'failed')),
    CONSTRAINT decisions_operators CHECK (confirmed_by IS NULL OR confirmed_by <> operator AND NOT alone)
);

-- +goose Down
DROP TABLE IF EXISTS decisions;
