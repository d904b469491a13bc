-- +goose NO TRANSACTION

-- +goose Up
-- The schema of the first release. Every later change is a migration of its own,
-- with one schema change in it. There is no way back from this one: it would drop
-- everything.

CREATE TABLE IF NOT EXISTS merchants (
    merchant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    tier TEXT NOT NULL,
    status TEXT NOT NULL,
    labels TEXT NOT NULL,
    version INT8 NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    change_shard INT4 NOT NULL,
    CONSTRAINT merchants_pkey PRIMARY KEY (merchant_id)
);

-- The shard stands first so that changes do not all meet at the index's end.
CREATE INDEX IF NOT EXISTS merchants_changed ON merchants (change_shard, changed_at);

-- The platform's own connections belong to this row as merchants' do to theirs.
INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
VALUES ('platform', 'Platform', '', 'active', '{}', 1, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 3)
ON CONFLICT (merchant_id) DO NOTHING;

CREATE TABLE IF NOT EXISTS api_keys (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    key_id TEXT NOT NULL,
    hash BYTEA NOT NULL,
    scopes INT4 NOT NULL,
    ips TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    CONSTRAINT api_keys_pkey PRIMARY KEY (merchant_id, mode, key_id),
    CONSTRAINT api_keys_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id)
);

CREATE UNIQUE INDEX IF NOT EXISTS api_keys_id ON api_keys (key_id);

CREATE TABLE IF NOT EXISTS connections (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    owner TEXT NOT NULL,
    version INT8 NOT NULL,
    sealed BYTEA NOT NULL,
    notify_token TEXT NOT NULL,
    CONSTRAINT connections_pkey PRIMARY KEY (merchant_id, mode, provider),
    CONSTRAINT connections_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id)
);

CREATE UNIQUE INDEX IF NOT EXISTS connections_notify ON connections (notify_token);

CREATE TABLE IF NOT EXISTS callback_secrets (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    next_sealed BYTEA,
    next_signs BOOL NOT NULL,
    url TEXT NOT NULL,
    CONSTRAINT callback_secrets_pkey PRIMARY KEY (merchant_id, mode),
    CONSTRAINT callback_secrets_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id)
);

-- A merchant's own limits, by the name of the rate or quota that they replace.
-- A rate or burst of zero, and a NULL quota, replace nothing.
CREATE TABLE IF NOT EXISTS merchant_limits (
    merchant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    rate_per_second FLOAT8 NOT NULL,
    burst INT8 NOT NULL,
    quota INT8,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    CONSTRAINT merchant_limits_pkey PRIMARY KEY (merchant_id, name),
    CONSTRAINT merchant_limits_merchant FOREIGN KEY (merchant_id) REFERENCES merchants (merchant_id)
);

CREATE TABLE IF NOT EXISTS audit (
    audit_id UUID NOT NULL,
    merchant_id TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    operator TEXT NOT NULL,
    action TEXT NOT NULL,
    detail TEXT NOT NULL,
    CONSTRAINT audit_pkey PRIMARY KEY (audit_id)
);

CREATE INDEX IF NOT EXISTS audit_merchant ON audit (merchant_id, at);

-- JSON documents are TEXT: no query looks into them, and a request must stay byte
-- for byte what it was. The state is submitting until the provider's word, and
-- acknowledged once a merchant has read Pending before that word.
CREATE TABLE IF NOT EXISTS movements (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    kind TEXT NOT NULL,
    reference TEXT NOT NULL,
    id UUID NOT NULL,
    attempt INT4 NOT NULL,
    operation TEXT NOT NULL,
    provider TEXT NOT NULL,
    connection_owner TEXT NOT NULL DEFAULT 'merchant',
    connection_account TEXT NOT NULL DEFAULT '',
    connection_version INT8 NOT NULL,
    state TEXT NOT NULL,
    sequence INT4 NOT NULL,
    amount INT8 NOT NULL,
    fee INT8 NOT NULL DEFAULT 0,
    cost INT8 NOT NULL DEFAULT 0,
    charge TEXT NOT NULL DEFAULT '',
    usage TEXT,
    request TEXT NOT NULL,
    quote TEXT,
    result TEXT,
    answer TEXT,
    refusal TEXT,
    provider_reference TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    fingerprint TEXT NOT NULL DEFAULT '',
    name_match BOOL,
    delivered BOOL NOT NULL DEFAULT FALSE,
    callback_url TEXT NOT NULL,
    request_id TEXT NOT NULL,
    policy_version TEXT NOT NULL,
    decision_id TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    updated_at TIMESTAMPTZ NOT NULL,
    send_by TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    polled_at TIMESTAMPTZ,
    misses INT4 NOT NULL,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    paid_at TIMESTAMPTZ,
    paid_late_at TIMESTAMPTZ,
    reversed_at TIMESTAMPTZ,
    CONSTRAINT movements_pkey PRIMARY KEY (merchant_id, mode, kind, reference),
    CONSTRAINT movements_state CHECK (
        state IN ('submitting', 'acknowledged', 'pending', 'succeeded', 'failed', 'expired', 'not_submitted')
    ),
    CONSTRAINT movements_amount CHECK (amount > 0)
);

CREATE UNIQUE INDEX IF NOT EXISTS movements_id ON movements (id);

CREATE INDEX IF NOT EXISTS movements_due ON movements (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- Operators find movements by others' ids (a request's, a provider's) in a span of
-- time. An index for each of these ids would make every reservation slower.
CREATE INDEX IF NOT EXISTS movements_created ON movements (due_bucket, created_at);

-- Finds the newest of the transfers without a reference that are equal.
CREATE INDEX IF NOT EXISTS movements_fingerprint ON movements (merchant_id, mode, fingerprint) WHERE fingerprint <> '';

-- Finds the collections that a payment may be for.
CREATE INDEX IF NOT EXISTS movements_collected ON movements (merchant_id, mode, amount, created_at) WHERE kind = 'collection';

-- The audit trail of movements. Rows are only added.
CREATE TABLE IF NOT EXISTS history (
    movement_id UUID NOT NULL,
    sequence INT4 NOT NULL,
    event TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    detail TEXT NOT NULL,
    CONSTRAINT history_pkey PRIMARY KEY (movement_id, sequence)
);

-- What a provider said that changed no state. The same again is counted.
CREATE TABLE IF NOT EXISTS history_notes (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    event TEXT NOT NULL,
    detail TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    times INT4 NOT NULL,
    CONSTRAINT history_notes_pkey PRIMARY KEY (movement_id, attempt, event, detail)
);

-- Operators' decisions on movements whose outcome nobody knows: one for each
-- attempt, proposed by one operator and confirmed by another, or made by one alone.
CREATE TABLE IF NOT EXISTS overrides (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    operator TEXT NOT NULL,
    outcome TEXT NOT NULL,
    reason TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    alone BOOL NOT NULL,
    confirmed_by TEXT,
    confirmed_reason TEXT,
    confirmed_at TIMESTAMPTZ,
    CONSTRAINT overrides_pkey PRIMARY KEY (movement_id, attempt),
    CONSTRAINT overrides_outcome CHECK (outcome IN ('success', 'failed')),
    CONSTRAINT overrides_operators CHECK (confirmed_by IS NULL OR confirmed_by <> operator AND NOT alone)
);

-- What needs a person. The same fact is one row, however often it is reported.
CREATE TABLE IF NOT EXISTS exceptions (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    subject TEXT NOT NULL,
    reason TEXT NOT NULL,
    fact_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    detail TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    resolved_at TIMESTAMPTZ,
    resolved_by TEXT,
    resolution TEXT,
    CONSTRAINT exceptions_pkey PRIMARY KEY (merchant_id, mode, subject, reason, fact_id)
);

CREATE INDEX IF NOT EXISTS exceptions_open ON exceptions (merchant_id, at) WHERE resolved_at IS NULL;

-- One row for each callback event, written in the commit that made it. An event
-- without a URL is not delivered, but its merchant can read it.
CREATE TABLE IF NOT EXISTS callbacks (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    event_id UUID NOT NULL,
    movement_id UUID NOT NULL,
    sequence INT4 NOT NULL,
    event TEXT NOT NULL,
    reference TEXT NOT NULL,
    url TEXT NOT NULL,
    body TEXT NOT NULL,
    state TEXT NOT NULL,
    attempts INT4 NOT NULL, -- of this series; a delivery sent again begins a new one
    tries INT4 NOT NULL DEFAULT 0, -- of all series
    created_at TIMESTAMPTZ NOT NULL,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    CONSTRAINT callbacks_pkey PRIMARY KEY (merchant_id, mode, event_id),
    CONSTRAINT callbacks_state CHECK (state IN ('none', 'waiting', 'delivered', 'gone', 'dead'))
);

CREATE INDEX IF NOT EXISTS callbacks_due ON callbacks (due_bucket, due_at) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS callbacks_order ON callbacks (merchant_id, mode, created_at, event_id);

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

-- One row for each mail, written in the commit of what it reports.
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
    fault TEXT NOT NULL DEFAULT '', -- of the last attempt
    created_at TIMESTAMPTZ NOT NULL,
    tried_at TIMESTAMPTZ,
    due_bucket INT4 NOT NULL,
    due_at TIMESTAMPTZ,
    CONSTRAINT mails_pkey PRIMARY KEY (mail_id),
    CONSTRAINT mails_state CHECK (state IN ('waiting', 'sent', 'dead'))
);

CREATE INDEX IF NOT EXISTS mails_due ON mails (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- How far an account's statement was read. The first merchant that collects on an
-- account owns it: no other merchant's statement may say that its sales were paid.
CREATE TABLE IF NOT EXISTS statements (
    account_id UUID NOT NULL,
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    cursor TEXT NOT NULL,
    through TIMESTAMPTZ NOT NULL,
    polled_at TIMESTAMPTZ,
    CONSTRAINT statements_pkey PRIMARY KEY (account_id)
);

-- The payments on an account's statement, one row each, in whatever order and
-- however often they are read: paid once the line that pays was read, reversed once
-- one that takes it back was, differs where lines do not agree.
CREATE TABLE IF NOT EXISTS statement_lines (
    account_id UUID NOT NULL,
    payment TEXT NOT NULL,
    line_id TEXT NOT NULL,
    amount INT8 NOT NULL,
    currency TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    paid BOOL NOT NULL,
    reversed_at TIMESTAMPTZ,
    differs BOOL NOT NULL,
    data TEXT NOT NULL,
    imported_at TIMESTAMPTZ NOT NULL,
    state TEXT NOT NULL,
    movement_id UUID,
    operator TEXT NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT statement_lines_pkey PRIMARY KEY (account_id, payment),
    CONSTRAINT statement_lines_state CHECK (state IN ('new', 'matched', 'paid', 'reversed', 'unmatched', 'ambiguous', 'again')),
    CONSTRAINT statement_lines_pays CHECK ((movement_id IS NULL) OR state IN ('matched', 'paid', 'reversed'))
);

-- A collection is paid by one payment at most.
CREATE UNIQUE INDEX IF NOT EXISTS statement_lines_movement ON statement_lines (movement_id) WHERE movement_id IS NOT NULL;

CREATE INDEX IF NOT EXISTS statement_lines_open ON statement_lines (account_id, payment) WHERE state IN ('new', 'matched');

-- The payments that wait for an operator.
CREATE INDEX IF NOT EXISTS statement_lines_listed ON statement_lines (account_id, at) WHERE state IN ('unmatched', 'ambiguous', 'again');

-- The payable amounts of an account that are reserved or in quarantine, one row
-- each. Reserving one that is not free yet breaks the constraint: an open
-- collection's amount is its alone, even where two replicas saw it free at once.
CREATE TABLE IF NOT EXISTS reserved_amounts (
    account_id UUID NOT NULL,
    amount INT8 NOT NULL,
    movement_id UUID NOT NULL,
    taken_at TIMESTAMPTZ NOT NULL,
    free_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT reserved_amounts_pkey PRIMARY KEY (account_id, amount),
    CONSTRAINT reserved_amounts_free CHECK (taken_at < free_at)
);

-- What merchants have: the sum of their transactions, kept beside them so that the
-- constraint can refuse. The platform's accounts have no row: they refuse nothing,
-- and every order would wait for that row.
CREATE TABLE IF NOT EXISTS ledger_balances (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    CONSTRAINT ledger_balances_pkey PRIMARY KEY (merchant_id, mode),
    CONSTRAINT ledger_balances_available CHECK (available >= 0),
    CONSTRAINT ledger_balances_held CHECK (held >= 0)
);

-- Double entry. Rows are only added. The key lets each attempt of a movement begin,
-- end and be reversed once.
CREATE TABLE IF NOT EXISTS ledger_transactions (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    subject UUID NOT NULL,
    attempt INT4 NOT NULL,
    step INT2 NOT NULL,
    kind TEXT NOT NULL,
    provider TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    margin INT8 NOT NULL,
    cost INT8 NOT NULL,
    deposit INT8 NOT NULL,
    adjustments INT8 NOT NULL,
    CONSTRAINT ledger_transactions_pkey PRIMARY KEY (merchant_id, mode, subject, attempt, step),
    CONSTRAINT ledger_transactions_balanced CHECK (available + held + margin + cost + deposit + adjustments = 0),
    CONSTRAINT ledger_transactions_kind CHECK (
        step = 1 AND kind IN ('charge', 'hold', 'credit', 'debit')
        OR step = 2 AND kind IN ('cost', 'refund', 'capture', 'release')
        OR step = 3 AND kind = 'reversal'
    )
);

CREATE INDEX IF NOT EXISTS ledger_transactions_at ON ledger_transactions (merchant_id, mode, at);

CREATE TABLE IF NOT EXISTS ledger_adjustments (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    reference TEXT NOT NULL,
    id UUID NOT NULL,
    amount INT8 NOT NULL,
    reason TEXT NOT NULL,
    state TEXT NOT NULL,
    requested_by TEXT NOT NULL,
    requested_at TIMESTAMPTZ NOT NULL,
    decided_by TEXT,
    decided_at TIMESTAMPTZ,
    CONSTRAINT ledger_adjustments_pkey PRIMARY KEY (merchant_id, mode, reference),
    CONSTRAINT ledger_adjustments_amount CHECK (amount <> 0),
    CONSTRAINT ledger_adjustments_state CHECK (state IN ('posted', 'waiting', 'rejected')),
    CONSTRAINT ledger_adjustments_operators CHECK (decided_by IS NULL OR decided_by <> requested_by)
);

-- How much of a quota or payout limit is used in a period. The ceiling is the limit
-- under which something was last counted. Marks are by replica: the number of the
-- last of its batches that was counted here, and how much that batch took.
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

-- Answers of queries that replicas share.
CREATE TABLE IF NOT EXISTS query_cache (
    key TEXT NOT NULL,
    body TEXT,
    fetched_at TIMESTAMPTZ,
    refreshing_until TIMESTAMPTZ,
    failed_at TIMESTAMPTZ,
    CONSTRAINT query_cache_pkey PRIMARY KEY (key)
);

-- Which replica works on a bucket of a queue.
CREATE TABLE IF NOT EXISTS leases (
    queue TEXT NOT NULL,
    bucket INT4 NOT NULL,
    holder TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT leases_pkey PRIMARY KEY (queue, bucket)
);
