-- +goose NO TRANSACTION

-- +goose Up
-- JSON documents are TEXT: nothing is asked inside them, and what was sent must
-- stay byte for byte what it was.
CREATE TABLE IF NOT EXISTS movements (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    kind TEXT NOT NULL,
    reference TEXT NOT NULL,
    id UUID NOT NULL,
    attempt INT4 NOT NULL,
    operation TEXT NOT NULL,
    provider TEXT NOT NULL,
    state TEXT NOT NULL,
    sequence INT4 NOT NULL,
    amount INT8 NOT NULL,
    request TEXT NOT NULL,
    result TEXT,
    answer TEXT,
    refusal TEXT,
    connection_version INT8 NOT NULL,
    provider_reference TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    callback_url TEXT NOT NULL,
    request_id TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    send_by TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    asked_at TIMESTAMPTZ,
    misses INT4 NOT NULL,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    paid_late_at TIMESTAMPTZ,
    reversed_at TIMESTAMPTZ,
    CONSTRAINT movements_pkey PRIMARY KEY (merchant_id, mode, kind, reference),
    CONSTRAINT movements_state CHECK (state IN ('sending', 'pending', 'done', 'failed', 'expired', 'unsent')),
    CONSTRAINT movements_amount CHECK (amount > 0)
);

-- +goose Down
DROP TABLE IF EXISTS movements;
