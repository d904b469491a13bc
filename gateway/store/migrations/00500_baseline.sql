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
    -- What is added to prices for this merchant, in rupiah.
    markup INT8 NULL,
    -- The most that may go out in a day, in rupiah.
    amount INT8 NULL,
    -- How many transfers may go out in a day.
    transfers INT8 NULL,
    -- For how many seconds equal transfers without a reference are one.
    repeat_within INT8 NULL,
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
    -- Where it was done from: a client's address, the command line or the gateway itself.
    origin TEXT NOT NULL DEFAULT '',
    -- How often it was done, where one entry stands for many.
    times INT8 NOT NULL DEFAULT 1,
    CONSTRAINT audit_pkey PRIMARY KEY (audit_id)
);

CREATE INDEX IF NOT EXISTS audit_merchant ON audit (merchant_id, at);

-- JSON documents are TEXT: no query looks into them, and a request must stay byte
-- for byte what it was. The state is submitting until the provider's word, and
-- acknowledged once a merchant has read Pending before that word. No check lists the
-- states, here or in callbacks and ledger_transactions: PostgreSQL reads its text anew
-- in each statement that writes the table, which costs more than writing the row.
-- The fillfactor leaves space on each page for the next version of its rows: an update
-- of columns without an index then writes no index. CockroachDB ignores it.
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
    -- The id of the reservation that made the attempt. A reference, its request and its
    -- times may be another replica's, too.
    reservation_id UUID,
    -- When the provider ended the movement's call with an error of its own: nothing of it
    -- is under way any more, so that it is not found is proof sooner.
    errored_at TIMESTAMPTZ,
    -- How a payment was paid, in the provider's words: '' where nobody tells.
    channel TEXT NOT NULL DEFAULT '',
    -- The state that a movement has ended in, '' before: what the lists by state go by. Until
    -- its end an update of a movement changes nothing that is indexed.
    ended TEXT NOT NULL DEFAULT '',
    CONSTRAINT movements_pkey PRIMARY KEY (merchant_id, mode, kind, reference),
    CONSTRAINT movements_amount CHECK (amount > 0)
) WITH (fillfactor = 60);

CREATE UNIQUE INDEX IF NOT EXISTS movements_id ON movements (id);

CREATE INDEX IF NOT EXISTS movements_due ON movements (due_bucket, due_at) WHERE due_at IS NOT NULL;

-- Operators find movements by others' ids (a request's, a provider's) in a span of
-- time. An index for each of these ids would make every reservation slower.
CREATE INDEX IF NOT EXISTS movements_created ON movements (due_bucket, created_at);

-- Finds the newest of the transfers without a reference that are equal.
CREATE INDEX IF NOT EXISTS movements_fingerprint ON movements (merchant_id, mode, fingerprint) WHERE fingerprint <> '';

-- Finds the collections that a payment may be for.
CREATE INDEX IF NOT EXISTS movements_collected ON movements (merchant_id, mode, amount, created_at) WHERE kind = 'collection';

-- Lists a merchant's movements that are open, and those that have ended in a state, the
-- newest first. The end stands first, so that no key is looked up by it.
CREATE INDEX IF NOT EXISTS movements_by_end ON movements (ended, merchant_id, mode, kind, created_at, id);

-- The audit trail of movements. Rows are only added.
CREATE TABLE IF NOT EXISTS history (
    movement_id UUID NOT NULL,
    sequence INT4 NOT NULL,
    event TEXT NOT NULL,
    at TIMESTAMPTZ NOT NULL,
    detail TEXT NOT NULL,
    -- The id of the transition that wrote the entry, made before it was sent: a commit
    -- whose answer was lost is found by it.
    transition_id UUID,
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
    CONSTRAINT overrides_outcome CHECK (outcome IN ('success', 'failed', 'resubmit')),
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

-- Lists the open exceptions of all merchants, the newest first. A digit of the
-- merchant's digest stands first, because times rise.
CREATE INDEX IF NOT EXISTS exceptions_listed ON exceptions (left(md5(merchant_id), 1), at) WHERE resolved_at IS NULL;

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
    -- When an ended delivery was last sent again: its tries go on until that is as old as
    -- a new event may get.
    resent_at TIMESTAMPTZ,
    -- When the database wrote an event, by its own clock: the order in which its merchant
    -- reads it.
    written_at TIMESTAMPTZ DEFAULT clock_timestamp(),
    CONSTRAINT callbacks_pkey PRIMARY KEY (merchant_id, mode, event_id)
);

CREATE INDEX IF NOT EXISTS callbacks_due ON callbacks (due_bucket, due_at) WHERE due_at IS NOT NULL;

CREATE INDEX IF NOT EXISTS callbacks_order ON callbacks (merchant_id, mode, created_at, event_id);

CREATE INDEX IF NOT EXISTS callbacks_written ON callbacks (merchant_id, mode, (COALESCE(written_at, created_at)), event_id);

-- Lists a merchant's callbacks that are not delivered, the newest first. Without the
-- delivered ones a delivery does not write it.
CREATE INDEX IF NOT EXISTS callbacks_undelivered ON callbacks (merchant_id, mode, state, created_at, event_id)
    WHERE state IN ('waiting', 'gone', 'dead');

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
    -- When the statement is read next, for all sales of the account. A new row is
    -- due.
    due_at TIMESTAMPTZ NOT NULL DEFAULT '1970-01-01',
    -- The queue's bucket.
    due_bucket INT4 NOT NULL DEFAULT 0,
    CONSTRAINT statements_pkey PRIMARY KEY (account_id)
);

CREATE INDEX IF NOT EXISTS statements_due ON statements (due_bucket, due_at);

-- Lists what waits on a merchant's statements, of whom there may be as many as merchants.
CREATE INDEX IF NOT EXISTS statements_listed ON statements (merchant_id);

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
    -- When the database wrote a transaction, by its own clock: one that is written long
    -- after its own time is in no snapshot of a day.
    written_at TIMESTAMPTZ DEFAULT clock_timestamp(),
    CONSTRAINT ledger_transactions_pkey PRIMARY KEY (merchant_id, mode, subject, attempt, step),
    CONSTRAINT ledger_transactions_balanced CHECK (available + held + margin + cost + deposit + adjustments = 0)
);

CREATE INDEX IF NOT EXISTS ledger_transactions_at ON ledger_transactions (merchant_id, mode, at);

-- The transactions that are in no snapshot of a day: almost none.
CREATE INDEX IF NOT EXISTS ledger_transactions_late ON ledger_transactions (merchant_id, mode, at)
    WHERE written_at - at > INTERVAL '1 hour';

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

CREATE INDEX IF NOT EXISTS ledger_adjustments_requested ON ledger_adjustments (merchant_id, mode, requested_by, requested_at);

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

-- What an installation has once, and keeps. The key by which references become ids of
-- movements is NULL until the first start that needs it; a row that is missing was
-- lost, and no gateway starts without it.
CREATE TABLE IF NOT EXISTS installation (
    name TEXT NOT NULL,
    sealed BYTEA,
    made_at TIMESTAMPTZ,
    CONSTRAINT installation_pkey PRIMARY KEY (name),
    CONSTRAINT installation_name CHECK (name = 'movement names'),
    CONSTRAINT installation_made CHECK ((sealed IS NULL) = (made_at IS NULL))
);

INSERT INTO installation (name) VALUES ('movement names') ON CONFLICT (name) DO NOTHING;

-- The gateways that run, or have run, on this database. Each writes its row whenever it
-- is asked whether it is ready, so that what it says is true of writes too.
CREATE TABLE IF NOT EXISTS replicas (
    replica_id UUID NOT NULL,
    started_at TIMESTAMPTZ NOT NULL,
    seen_at TIMESTAMPTZ NOT NULL,
    -- The policy version that a gateway runs.
    policy_version TEXT NOT NULL DEFAULT '',
    -- The version of a gateway's program.
    binary_version TEXT NOT NULL DEFAULT '',
    -- The first schema that a gateway works on.
    schema_from INT8 NOT NULL DEFAULT 0,
    -- The first schema after it that a gateway does not work on any more.
    schema_below INT8 NOT NULL DEFAULT 0,
    -- The SHA-256 of each plugin that a gateway runs, by provider, as a JSON object.
    plugins TEXT NOT NULL DEFAULT '{}',
    -- The name of a gateway's machine.
    host TEXT NOT NULL DEFAULT '',
    -- A number of 16 bits that a gateway is named by where there is no room for its id.
    tag INT8 NOT NULL DEFAULT 0,
    -- When a gateway said that it ends. One that was killed says nothing.
    ended_at TIMESTAMPTZ,
    -- The SHA-256 of each file in a gateway's directory of plugins, as a JSON array.
    plugin_files TEXT NOT NULL DEFAULT '[]',
    CONSTRAINT replicas_pkey PRIMARY KEY (replica_id)
);

-- What is known of asking a provider, one row for each movement of which there is
-- something left to ask: asking never rewrites the movement's own, wide row. Whoever
-- changes a movement's state takes this row first, as it was seen: the version counts
-- its changes, and an attempt that takes a freed reference has a row of its own. The
-- account is the queue's: of which upstream, and of whose account there.
CREATE TABLE IF NOT EXISTS polls (
    movement_id UUID NOT NULL,
    attempt INT4 NOT NULL,
    version INT8 NOT NULL,
    account TEXT NOT NULL,
    bucket INT4 NOT NULL,
    due TIMESTAMPTZ,
    asked_at TIMESTAMPTZ,
    misses INT4 NOT NULL,
    CONSTRAINT polls_pkey PRIMARY KEY (movement_id)
);

-- The id stands last, so that a scan goes on behind any row, also where many are due at
-- one moment.
CREATE INDEX IF NOT EXISTS polls_due ON polls (bucket, due, movement_id);

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

-- What the transactions of an account came to when a day of the ledger ended: those
-- with a time before it that were not written late. A day without transactions has
-- none. Rows are only added.
CREATE TABLE IF NOT EXISTS ledger_snapshots (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    until TIMESTAMPTZ NOT NULL,
    provider TEXT NOT NULL,
    transactions INT8 NOT NULL,
    available INT8 NOT NULL,
    held INT8 NOT NULL,
    margin INT8 NOT NULL,
    cost INT8 NOT NULL,
    deposit INT8 NOT NULL,
    adjustments INT8 NOT NULL,
    verified_at TIMESTAMPTZ,
    CONSTRAINT ledger_snapshots_pkey PRIMARY KEY (merchant_id, mode, until, provider),
    CONSTRAINT ledger_snapshots_balanced CHECK (available + held + margin + cost + deposit + adjustments = 0)
);

-- The approved manifests that plugins have shown, by their digests. They are what a
-- gateway knows of a plugin's operations while the plugin can't be started.
CREATE TABLE IF NOT EXISTS manifests (
    digest TEXT NOT NULL,
    provider TEXT NOT NULL,
    manifest BYTEA NOT NULL,
    kept_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT manifests_pkey PRIMARY KEY (digest)
);

-- The restores of this database that gateways were told of. While one is not opened, no
-- gateway moves money or works by itself. Since is the last trace of a gateway before
-- it, NULL where there is none.
CREATE TABLE IF NOT EXISTS recoveries (
    recovery_id UUID NOT NULL,
    begun_at TIMESTAMPTZ NOT NULL,
    since TIMESTAMPTZ,
    opened_at TIMESTAMPTZ,
    opened_by TEXT,
    CONSTRAINT recoveries_pkey PRIMARY KEY (recovery_id),
    CONSTRAINT recoveries_opened CHECK ((opened_at IS NULL) = (opened_by IS NULL))
);

-- The last version of a connection that was removed: it must not come back with other
-- credentials.
CREATE TABLE IF NOT EXISTS removed_connections (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    provider TEXT NOT NULL,
    version INT8 NOT NULL,
    CONSTRAINT removed_connections_pkey PRIMARY KEY (merchant_id, mode, provider)
);

-- How often an operator has credited or debited a merchant without a second one. Who
-- posts alone counts one more than was there when the sum of a day was read, so that two
-- at once can't both fit below the limit.
CREATE TABLE IF NOT EXISTS adjusted_alone (
    requested_by TEXT NOT NULL,
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    times INT8 NOT NULL,
    CONSTRAINT adjusted_alone_pkey PRIMARY KEY (requested_by, merchant_id, mode)
);

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
    -- Over what an operator asked for and how far it has come; '' for one that no gateway
    -- believes.
    mac BYTEA NOT NULL DEFAULT '',
    -- How often the head had changed when the activation was proposed.
    changes INT8 NOT NULL DEFAULT 0,
    CONSTRAINT policy_activations_pkey PRIMARY KEY (activation_id),
    CONSTRAINT policy_activations_state CHECK (state IN ('waiting', 'proposed', 'done', 'refused', 'withdrawn')),
    CONSTRAINT policy_activations_decided CHECK ((decided_at IS NULL) = (state IN ('waiting', 'proposed')))
);

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

-- What each replica answered to a proposed version: compiled, or why not.
CREATE TABLE IF NOT EXISTS policy_answers (
    activation_id UUID NOT NULL,
    replica_id UUID NOT NULL,
    compiled BOOL NOT NULL,
    reason TEXT NOT NULL,
    answered_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT policy_answers_pkey PRIMARY KEY (activation_id, replica_id)
);

-- What a replica decided in a minute: how many of what (counts, packed), and the inputs
-- of some requests that were refused (sealed). A replica writes a part each time.
CREATE TABLE IF NOT EXISTS decision_log (
    shard INT4 NOT NULL,
    minute TIMESTAMPTZ NOT NULL,
    replica_id UUID NOT NULL,
    part INT8 NOT NULL,
    counts BYTEA NOT NULL,
    inputs BYTEA,
    CONSTRAINT decision_log_pkey PRIMARY KEY (shard, minute, replica_id, part)
);

-- Merchants' records as they were at a version, written by the change that replaced them,
-- so that decisions can be understood, and tried again under another policy.
CREATE TABLE IF NOT EXISTS merchant_records (
    merchant_id TEXT NOT NULL,
    version INT8 NOT NULL,
    record TEXT NOT NULL,
    replaced_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT merchant_records_pkey PRIMARY KEY (merchant_id, version)
);

-- A token bucket of a merchant's rate, which all replicas share: what is in it as of a
-- moment by this database's clock, and below zero what was admitted on credit. What did
-- not fit into it of late is spare. The last four columns are the last ask and what it
-- was granted.
CREATE TABLE IF NOT EXISTS rates (
    merchant_id TEXT NOT NULL,
    mode TEXT NOT NULL,
    name TEXT NOT NULL,
    per_second FLOAT8 NOT NULL,
    burst INT8 NOT NULL,
    tokens FLOAT8 NOT NULL,
    as_of TIMESTAMPTZ NOT NULL,
    spare FLOAT8 NOT NULL,
    spare_at TIMESTAMPTZ NOT NULL,
    owed FLOAT8 NOT NULL,
    late FLOAT8 NOT NULL,
    want INT8 NOT NULL,
    granted INT8 NOT NULL,
    CONSTRAINT rates_pkey PRIMARY KEY (merchant_id, mode, name)
);

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

-- Which approval of each plugin is in force, NULL for one that was removed, and which was
-- before it. While replica_id is given that replica alone runs it, and all others the one
-- before. The changes count from 1.
CREATE TABLE IF NOT EXISTS plugin_heads (
    provider TEXT NOT NULL,
    approval_id UUID,
    before_id UUID,
    replica_id UUID,
    changes INT8 NOT NULL,
    changed_at TIMESTAMPTZ NOT NULL,
    changed_by TEXT NOT NULL,
    mac BYTEA NOT NULL,
    CONSTRAINT plugin_heads_pkey PRIMARY KEY (provider)
);

-- Who may sign in to the consoles. The password is kept as argon2id's text, the TOTP secret
-- sealed; totp_step is the last time step whose code was used. The epoch ends all sessions
-- by rising.
CREATE TABLE IF NOT EXISTS people (
    person_id UUID NOT NULL,
    email TEXT NOT NULL,
    name TEXT NOT NULL,
    password TEXT NOT NULL,
    totp BYTEA NOT NULL,
    totp_step INT8 NOT NULL,
    epoch INT8 NOT NULL,
    failures INT8 NOT NULL,
    failed_at TIMESTAMPTZ NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    -- Issuer and subject of the account at an identity provider by which somebody has signed in.
    vouched_as TEXT NOT NULL DEFAULT '',
    CONSTRAINT people_pkey PRIMARY KEY (person_id),
    CONSTRAINT people_email UNIQUE (email)
);

-- The SHA-256 of each recovery code that was not used yet.
CREATE TABLE IF NOT EXISTS recovery_codes (
    person_id UUID NOT NULL,
    hash BYTEA NOT NULL,
    CONSTRAINT recovery_codes_pkey PRIMARY KEY (person_id, hash)
);

-- What people may do for a merchant, or, where that is the platform, as operators.
CREATE TABLE IF NOT EXISTS members (
    merchant_id TEXT NOT NULL,
    person_id UUID NOT NULL,
    role TEXT NOT NULL,
    since TIMESTAMPTZ NOT NULL,
    CONSTRAINT members_pkey PRIMARY KEY (merchant_id, person_id)
);

-- Nothing reads by it.
CREATE INDEX IF NOT EXISTS members_person ON members (person_id);

-- Links by which people become members, by the SHA-256 of the secret in them. A used one is
-- gone.
CREATE TABLE IF NOT EXISTS invitations (
    hash BYTEA NOT NULL,
    merchant_id TEXT NOT NULL,
    role TEXT NOT NULL,
    email TEXT NOT NULL,
    invited_by TEXT NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT invitations_pkey PRIMARY KEY (hash)
);

-- Sessions of the consoles, by the hash of the cookie's token.
CREATE TABLE IF NOT EXISTS sessions (
    token_hash TEXT NOT NULL,
    content BYTEA NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (token_hash)
);

CREATE INDEX IF NOT EXISTS sessions_expiry ON sessions (expires_at);

-- When and from where an API key was used last, to the minute.
CREATE TABLE IF NOT EXISTS key_uses (
    merchant_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    used_at TIMESTAMPTZ NOT NULL,
    address TEXT NOT NULL,
    CONSTRAINT key_uses_pkey PRIMARY KEY (merchant_id, key_id)
);

-- Tokens of operators, by their SHA-256; a token itself is not kept. An operator has
-- several during a rotation's overlap. The MAC is over all of it, so that who writes the
-- database makes nobody an operator.
CREATE TABLE IF NOT EXISTS operator_tokens (
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    inputs BOOL NOT NULL,
    created_by TEXT NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    mac BYTEA NOT NULL,
    CONSTRAINT operator_tokens_pkey PRIMARY KEY (hash)
);

-- When an API key was used last from each address, to the minute, in place of key_uses.
CREATE TABLE IF NOT EXISTS key_addresses (
    merchant_id TEXT NOT NULL,
    key_id TEXT NOT NULL,
    address TEXT NOT NULL,
    used_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT key_addresses_pkey PRIMARY KEY (merchant_id, key_id, address)
);
