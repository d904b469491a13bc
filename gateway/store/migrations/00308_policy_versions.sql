-- +goose NO TRANSACTION
-- +goose Up
-- The policy sets that were pushed, by the digest of their files. A row is never
-- changed, but for its state; its MAC is over all that does not change, so that a row
-- that no gateway wrote is known. Files are a JSON object of contents by name, compressed.
CREATE TABLE IF NOT EXISTS policy_versions (
    version TEXT NOT NULL,
    number INT8 NOT NULL,
    files BYTEA NOT NULL,
    author TEXT NOT NULL,
    message TEXT NOT NULL,
    forced TEXT NOT NULL,
    predecessor TEXT NOT NULL,
    pushed_at TIMESTAMPTZ NOT NULL,
    mac BYTEA NOT NULL,
    state TEXT NOT NULL,
    state_at TIMESTAMPTZ NOT NULL,
    findings TEXT NOT NULL,
    CONSTRAINT policy_versions_pkey PRIMARY KEY (version),
    CONSTRAINT policy_versions_number UNIQUE (number),
    CONSTRAINT policy_versions_state CHECK (state IN ('refused', 'pushed', 'waiting', 'active', 'past'))
);
