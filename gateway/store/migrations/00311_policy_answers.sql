-- +goose NO TRANSACTION
-- +goose Up
-- What each replica answered to a proposed version: compiled, or why not.
CREATE TABLE IF NOT EXISTS policy_answers (
    activation_id UUID NOT NULL,
    replica_id UUID NOT NULL,
    compiled BOOL NOT NULL,
    reason TEXT NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT policy_answers_pkey PRIMARY KEY (activation_id, replica_id)
);
