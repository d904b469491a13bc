-- +goose NO TRANSACTION
-- +goose Up
-- The version in force, in the one row that every replica reads several times a second,
-- and the activation that is proposed to replace it. The MAC is over what is in force.
CREATE TABLE IF NOT EXISTS policy_head (
    name TEXT NOT NULL,
    activation_id UUID NOT NULL,
    version TEXT NOT NULL,
    changes INT8 NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    mac BYTEA NOT NULL,
    proposal_id UUID,
    proposed TEXT,
    proposed_at TIMESTAMPTZ,
    CONSTRAINT policy_head_pkey PRIMARY KEY (name),
    CONSTRAINT policy_head_name CHECK (name = 'head'),
    CONSTRAINT policy_head_proposal CHECK ((proposal_id IS NULL) = (proposed IS NULL) AND (proposal_id IS NULL) = (proposed_at IS NULL))
);
