-- +goose NO TRANSACTION

-- +goose Up
-- How much of what is limited was used, by merchant, mode, name and period. The
-- ceiling is the limit under which something was last taken. Marks are by replica:
-- the number of its last batch that was counted here, and how much that took.
CREATE TABLE IF NOT EXISTS usage (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    name TEXT NOT NULL,
    period TEXT NOT NULL,
    used INT8 NOT NULL,
    ceiling INT8 NOT NULL,
    marks JSONB NOT NULL DEFAULT '{}',
    CONSTRAINT usage_pkey PRIMARY KEY (merchant_id, mode, name, period),
    CONSTRAINT usage_used CHECK (used >= 0),
    CONSTRAINT usage_ceiling CHECK (used <= ceiling)
);

-- +goose Down
DROP TABLE IF EXISTS usage;
