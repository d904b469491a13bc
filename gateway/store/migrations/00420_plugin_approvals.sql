-- +goose NO TRANSACTION
-- +goose Up
-- What operators approved: a plugin's binary by its digest, its manifest (by its digest in
-- the table manifests), what it may reach, and what was proven of it. The MAC is over all
-- of it; nothing changes but the second operator's name.
CREATE TABLE IF NOT EXISTS plugin_approvals (
    approval_id UUID NOT NULL,
    provider TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    plugin_version TEXT NOT NULL,
    reach TEXT NOT NULL,
    evidence TEXT NOT NULL,
    approved_by TEXT NOT NULL,
    approved_at TIMESTAMPTZ NOT NULL,
    confirmed_by TEXT NOT NULL,
    mac BYTEA NOT NULL,
    CONSTRAINT plugin_approvals_pkey PRIMARY KEY (approval_id)
);
