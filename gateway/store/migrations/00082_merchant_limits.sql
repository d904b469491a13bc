-- +goose NO TRANSACTION

-- +goose Up
-- Limits of a merchant's own, by the name of the rate or quota that they go
-- before. Zero rates and bursts, and no quota, say nothing.
CREATE TABLE IF NOT EXISTS merchant_limits (
    merchant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    rate_per_second FLOAT8 NOT NULL,
    burst INT8 NOT NULL,
    quota INT8,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    CONSTRAINT merchant_limits_pkey PRIMARY KEY (merchant_id, name),
    CONSTRAINT merchant_limits_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id)
);

-- +goose Down
DROP TABLE IF EXISTS merchant_limits;
