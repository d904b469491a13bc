-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS callback_secrets (
    merchant_id TEXT NOT NULL REFERENCES merchants (merchant_id),
    mode TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    next_sealed BYTEA,
    next_signs BOOL NOT NULL,
    url TEXT NOT NULL,
    CONSTRAINT callback_secrets_pkey PRIMARY KEY (merchant_id, mode)
);

-- +goose Down
DROP TABLE IF EXISTS callback_secrets;
