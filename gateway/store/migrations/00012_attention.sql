-- +goose NO TRANSACTION

-- +goose Up
-- The operators' list: what can't be decided without a person. The same fact
-- told twice is one row.
CREATE TABLE IF NOT EXISTS attention (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    detail TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    resolved_at TIMESTAMPTZ,
    resolved_by TEXT,
    resolution TEXT,
    CONSTRAINT attention_pkey PRIMARY KEY (merchant_id, mode, subject, reason, fact_id)
);

-- +goose Down
DROP TABLE IF EXISTS attention;
