-- +goose NO TRANSACTION

-- +goose Up
-- One row for each mail about a movement, written in the commit of what it tells.
CREATE TABLE IF NOT EXISTS mails (
    mail_id UUID NOT NULL,
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    movement_id UUID NOT NULL,
    recipient TEXT NOT NULL,
    subject TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INT4 NOT NULL DEFAULT 0,
    fault TEXT NOT NULL DEFAULT '', -- of the last try
    created_at TIMESTAMPTZ NOT NULL,
    tried_at TIMESTAMPTZ,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    CONSTRAINT mails_pkey PRIMARY KEY (mail_id),
    CONSTRAINT mails_state CHECK (state IN ('waiting', 'sent', 'dead'))
);

-- +goose Down
DROP TABLE IF EXISTS mails;
