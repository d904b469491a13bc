-- +goose NO TRANSACTION
-- +goose Up
-- What operators asked to put in force. One that is proposed waits for the replicas to
-- compile its version; back_id is the activation whose version a rollback returns to.
CREATE TABLE IF NOT EXISTS policy_activations (
    activation_id UUID NOT NULL,
    version TEXT NOT NULL,
    replaces TEXT NOT NULL,
    back_id UUID,
    reason TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL,
    confirmed_by TEXT NOT NULL,
    proposed_at TIMESTAMPTZ,
    state TEXT NOT NULL,
    decided_at TIMESTAMPTZ,
    detail TEXT NOT NULL,
    CONSTRAINT policy_activations_pkey PRIMARY KEY (activation_id),
    CONSTRAINT policy_activations_state CHECK (state IN ('waiting', 'proposed', 'done', 'refused', 'withdrawn')),
    CONSTRAINT policy_activations_decided CHECK ((decided_at IS NULL) = (state IN ('waiting', 'proposed')))
);
