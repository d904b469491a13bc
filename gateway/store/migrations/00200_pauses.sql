-- +goose NO TRANSACTION
-- +goose Up
-- What operators have paused, by whose account each replica learns of it: the
-- merchant's, or the platform's where it is for all. An empty mode is both, and
-- transfers name no provider.
CREATE TABLE IF NOT EXISTS pauses (
    merchant_id TEXT NOT NULL,
    what TEXT NOT NULL,
    provider TEXT NOT NULL,
    mode TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pauses_pkey PRIMARY KEY (merchant_id, what, provider, mode),
    CONSTRAINT pauses_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id),
    CONSTRAINT pauses_what CHECK (what IN ('connection', 'provider', 'transfers'))
);
