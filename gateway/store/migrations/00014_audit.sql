-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS audit (
    audit_id UUID NOT NULL,
    merchant_id TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    operator TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL,
    CONSTRAINT audit_pkey PRIMARY KEY (audit_id)
);

-- +goose Down
DROP TABLE IF EXISTS audit;
