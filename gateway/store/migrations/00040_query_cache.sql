-- +goose NO TRANSACTION

-- +goose Up
CREATE TABLE IF NOT EXISTS query_cache (
    key TEXT NOT NULL,
    body TEXT,
    fetched_at TIMESTAMPTZ,
    refreshing_until TIMESTAMPTZ,
    failed_at TIMESTAMPTZ,
    CONSTRAINT query_cache_pkey PRIMARY KEY (key)
);

-- +goose Down
DROP TABLE IF EXISTS query_cache;
