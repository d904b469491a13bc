-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS callback_attempts (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    event_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    took_ms INT4 NOT NULL,
    outcome TEXT NOT NULL,
    status INT4 NOT NULL,
    fault TEXT NOT NULL,
    answer TEXT NOT NULL,
    CONSTRAINT callback_attempts_pkey PRIMARY KEY (merchant_id, mode, event_id, attempt)
);

-- +goose Down
DROP TABLE IF EXISTS callback_attempts;
