-- name: LedgerAccountAfter :one
-- The next account in the order of their keys that has a row of any kind in the ledger,
-- or a movement.
SELECT following.merchant_id, following.mode FROM (
    (SELECT b.merchant_id, b.mode FROM ledger_balances AS b
    WHERE (b.merchant_id, b.mode) > (@after_merchant::TEXT, @after_mode::TEXT) ORDER BY b.merchant_id, b.mode LIMIT 1)
    UNION ALL
    (SELECT t.merchant_id, t.mode FROM ledger_transactions AS t
    WHERE (t.merchant_id, t.mode) > (@after_merchant::TEXT, @after_mode::TEXT) ORDER BY t.merchant_id, t.mode LIMIT 1)
    UNION ALL
    (SELECT s.merchant_id, s.mode FROM ledger_snapshots AS s
    WHERE (s.merchant_id, s.mode) > (@after_merchant::TEXT, @after_mode::TEXT) ORDER BY s.merchant_id, s.mode LIMIT 1)
    UNION ALL
    (SELECT a.merchant_id, a.mode FROM ledger_adjustments AS a
    WHERE (a.merchant_id, a.mode) > (@after_merchant::TEXT, @after_mode::TEXT) ORDER BY a.merchant_id, a.mode LIMIT 1)
    UNION ALL
    (SELECT m.merchant_id, m.mode FROM movements AS m
    WHERE (m.merchant_id, m.mode) > (@after_merchant::TEXT, @after_mode::TEXT) ORDER BY m.merchant_id, m.mode LIMIT 1)
) AS following
ORDER BY following.merchant_id, following.mode
LIMIT 1;

-- name: SnapshotsOf :one
-- The ends of an account's last verified day and of its last day that has a snapshot.
SELECT COALESCE((
        SELECT MAX(v.until) FROM ledger_snapshots AS v
        WHERE v.merchant_id = @merchant_id AND v.mode = @mode AND v.verified_at IS NOT NULL
    ), TIMESTAMPTZ '0001-01-01 00:00:00Z')::TIMESTAMPTZ AS verified, COALESCE((
        SELECT MAX(n.until) FROM ledger_snapshots AS n
        WHERE n.merchant_id = @merchant_id AND n.mode = @mode
    ), TIMESTAMPTZ '0001-01-01 00:00:00Z')::TIMESTAMPTZ AS newest;

-- name: VerifySnapshots :exec
-- Marks snapshots up to which a check has found nothing wrong.
UPDATE ledger_snapshots SET verified_at = CLOCK_TIMESTAMP()
FROM (
    SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@untils::TIMESTAMPTZ[]) AS until
) AS sound
WHERE ledger_snapshots.merchant_id = sound.merchant_id AND ledger_snapshots.mode = sound.mode AND ledger_snapshots.until = sound.until
    AND ledger_snapshots.verified_at IS NULL;

-- name: UnverifySnapshots :exec
-- Takes the marks of accounts back: their next check begins anew.
UPDATE ledger_snapshots SET verified_at = NULL
FROM (SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode) AS wrong
WHERE ledger_snapshots.merchant_id = wrong.merchant_id AND ledger_snapshots.mode = wrong.mode AND ledger_snapshots.verified_at IS NOT NULL;

-- name: CheckLedger :many
-- Of some accounts, the rows that break an invariant, and how many rows each was checked
-- on. Since is the end of an account's last verified day, or long ago: what was added
-- since is checked with all that belongs to it, on top of the day's snapshot. OFFSET 0
-- keeps PostgreSQL from joining whole tables.
WITH accounts AS (
    SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@sinces::TIMESTAMPTZ[]) AS since
), fresh AS (
    SELECT t.merchant_id, t.mode, t.subject, t.attempt, t.step, t.kind, t.available, t.held, t.margin, t.cost, t.deposit, t.adjustments
    FROM accounts AS a
    JOIN LATERAL (
        SELECT l.merchant_id, l.mode, l.subject, l.attempt, l.step, l.kind, l.available, l.held, l.margin, l.cost, l.deposit, l.adjustments
        FROM ledger_transactions AS l
        WHERE l.merchant_id = a.merchant_id AND l.mode = a.mode AND l.at >= a.since
        OFFSET 0
    ) AS t ON TRUE
    UNION ALL
    SELECT t.merchant_id, t.mode, t.subject, t.attempt, t.step, t.kind, t.available, t.held, t.margin, t.cost, t.deposit, t.adjustments
    FROM accounts AS a
    JOIN LATERAL (
        SELECT l.merchant_id, l.mode, l.subject, l.attempt, l.step, l.kind, l.available, l.held, l.margin, l.cost, l.deposit, l.adjustments
        FROM ledger_transactions AS l
        WHERE l.merchant_id = a.merchant_id AND l.mode = a.mode AND l.at < a.since AND l.written_at - l.at > INTERVAL '1 hour'
        OFFSET 0
    ) AS t ON TRUE
), named AS (
    SELECT f.merchant_id, f.mode, f.subject FROM fresh AS f
    UNION
    SELECT a.merchant_id, a.mode, m.id FROM accounts AS a
    JOIN LATERAL (
        SELECT n.id FROM movements AS n
        WHERE n.ended IN ('', 'succeeded', 'failed', 'expired', 'not_submitted')
            AND n.merchant_id = a.merchant_id AND n.mode = a.mode AND n.kind IN ('payment', 'collection', 'transfer', 'order')
            AND n.created_at >= a.since AND (n.charge <> '' OR n.kind = 'order' AND n.connection_owner = 'platform')
        OFFSET 0
    ) AS m ON TRUE
    UNION
    SELECT a.merchant_id, a.mode, m.id FROM accounts AS a
    JOIN LATERAL (
        SELECT n.id FROM movements AS n
        WHERE n.ended = '' AND n.merchant_id = a.merchant_id AND n.mode = a.mode AND n.charge <> ''
        OFFSET 0
    ) AS m ON TRUE
    UNION
    -- What ended or was reversed since has an event.
    SELECT a.merchant_id, a.mode, e.movement_id FROM accounts AS a
    JOIN LATERAL (
        SELECT c.movement_id FROM callbacks AS c
        WHERE c.merchant_id = a.merchant_id AND c.mode = a.mode AND COALESCE(c.written_at, c.created_at) >= a.since
            AND a.since > TIMESTAMPTZ '0001-01-01 00:00:00Z'
        OFFSET 0
    ) AS e ON TRUE
), movements_named AS (
    SELECT m.merchant_id, m.mode, m.id, m.reference, m.kind, m.connection_owner, m.charge, m.attempt, m.state, m.amount, m.cost, m.reversed_at
    FROM named AS n
    JOIN LATERAL (
        SELECT x.merchant_id, x.mode, x.id, x.reference, x.kind, x.connection_owner, x.charge, x.attempt, x.state, x.amount, x.cost, x.reversed_at
        FROM movements AS x
        WHERE x.id = n.subject AND x.merchant_id = n.merchant_id AND x.mode = n.mode
        OFFSET 0
    ) AS m ON TRUE
), attempts AS (
    SELECT n.merchant_id, n.mode, n.subject, t.attempt, COALESCE(MIN(CASE WHEN t.step = 1 THEN t.kind END), 'none') AS begun,
        COALESCE(MIN(CASE WHEN t.step = 2 THEN t.kind END), 'none') AS ended,
        COALESCE(MIN(CASE WHEN t.step = 3 THEN t.kind END), 'none') AS reversed,
        SUM(t.available) AS available, SUM(t.held) AS held, SUM(t.margin) AS margin, SUM(t.cost) AS cost, SUM(t.deposit) AS deposit,
        SUM(t.adjustments) AS adjustments
    FROM named AS n
    JOIN LATERAL (
        SELECT l.attempt, l.step, l.kind, l.available, l.held, l.margin, l.cost, l.deposit, l.adjustments FROM ledger_transactions AS l
        WHERE l.merchant_id = n.merchant_id AND l.mode = n.mode AND l.subject = n.subject
        OFFSET 0
    ) AS t ON TRUE
    GROUP BY n.merchant_id, n.mode, n.subject, t.attempt
), spans AS (
    SELECT merchant_id, mode, subject, count(*) AS attempts, MIN(attempt) AS first_attempt, MAX(attempt) AS last_attempt FROM attempts
    GROUP BY merchant_id, mode, subject
), standing AS (
    -- What each attempt of a movement should have come to. Those before the last
    -- were not submitted, and may have been made on another account, where nothing is paid.
    SELECT m.merchant_id, m.mode, m.id, a.attempt, m.attempt AS last_attempt, m.amount, m.cost,
        a.attempt = m.attempt AND m.state IN ('submitting', 'acknowledged', 'pending') AS open,
        a.attempt = m.attempt AND m.state = 'succeeded' AS succeeded,
        a.attempt = m.attempt AND m.reversed_at IS NOT NULL AS reversed,
        CASE WHEN a.attempt < m.attempt THEN a.begun WHEN m.charge = 'charged' THEN 'charge' WHEN m.charge = 'held' THEN 'hold'
            ELSE 'nothing' END AS begun
    FROM attempts AS a
    JOIN movements_named AS m ON m.id = a.subject AND m.merchant_id = a.merchant_id AND m.mode = a.mode
), expected AS (
    SELECT merchant_id, mode, id, attempt, begun,
        CASE WHEN open THEN 'none'
            WHEN succeeded AND begun = 'charge' THEN 'cost' WHEN succeeded THEN 'capture'
            WHEN begun = 'charge' THEN 'refund' ELSE 'release' END AS ended,
        CASE WHEN reversed THEN 'reversal' ELSE 'none' END AS reversed,
        CASE WHEN open OR succeeded AND NOT reversed THEN -amount ELSE 0 END AS available,
        CASE WHEN open AND begun = 'hold' THEN amount ELSE 0 END AS held,
        CASE WHEN open AND begun = 'charge' OR succeeded AND NOT reversed THEN amount ELSE 0 END AS margin,
        CASE WHEN succeeded AND NOT reversed THEN cost ELSE 0 END AS cost
    FROM standing
), sums AS (
    SELECT parts.merchant_id, parts.mode, SUM(parts.available) AS available, SUM(parts.held) AS held, SUM(parts.platform) AS platform
    FROM (
        SELECT s.merchant_id, s.mode, s.available, s.held, s.margin + s.cost + s.deposit + s.adjustments AS platform FROM accounts AS a
        JOIN ledger_snapshots AS s ON s.merchant_id = a.merchant_id AND s.mode = a.mode AND s.until = a.since
        UNION ALL
        SELECT f.merchant_id, f.mode, f.available, f.held, f.margin + f.cost + f.deposit + f.adjustments FROM fresh AS f
    ) AS parts
    GROUP BY parts.merchant_id, parts.mode
), under_way AS (
    SELECT merchant_id, mode, SUM(amount) AS held FROM movements_named
    WHERE charge = 'held' AND state IN ('submitting', 'acknowledged', 'pending')
    GROUP BY merchant_id, mode
), balances AS (
    SELECT a.merchant_id, a.mode, b.merchant_id IS NOT NULL AS kept, b.available, b.held,
        s.merchant_id IS NOT NULL AS posted, COALESCE(s.available, 0) AS posted_available, COALESCE(s.held, 0) AS posted_held,
        COALESCE(s.platform, 0) AS platform, COALESCE(u.held, 0) AS held_for
    FROM accounts AS a
    LEFT JOIN ledger_balances AS b ON b.merchant_id = a.merchant_id AND b.mode = a.mode
    LEFT JOIN sums AS s ON s.merchant_id = a.merchant_id AND s.mode = a.mode
    LEFT JOIN under_way AS u ON u.merchant_id = a.merchant_id AND u.mode = a.mode
), adjusted AS (
    SELECT j.merchant_id, j.mode, j.id, j.reference, j.amount, COALESCE(j.decided_at, j.requested_at) >= a.since AS fresh FROM accounts AS a
    JOIN LATERAL (
        SELECT x.merchant_id, x.mode, x.id, x.reference, x.amount, x.decided_at, x.requested_at FROM ledger_adjustments AS x
        WHERE x.merchant_id = a.merchant_id AND x.mode = a.mode AND x.state = 'posted'
        OFFSET 0
    ) AS j ON TRUE
), snapshots AS (
    SELECT p.merchant_id, p.mode, p.until, p.provider, p.transactions, p.available, p.held, p.margin, p.cost, p.deposit, p.adjustments, a.since
    FROM accounts AS a
    JOIN LATERAL (
        SELECT x.merchant_id, x.mode, x.until, x.provider, x.transactions, x.available, x.held, x.margin, x.cost, x.deposit, x.adjustments
        FROM ledger_snapshots AS x
        WHERE x.merchant_id = a.merchant_id AND x.mode = a.mode AND x.until >= a.since
        OFFSET 0
    ) AS p ON TRUE
), days AS (
    SELECT d.merchant_id, d.mode, d.until, d.since, LAG(d.until) OVER (PARTITION BY d.merchant_id, d.mode ORDER BY d.until) AS follows
    FROM (SELECT DISTINCT merchant_id, mode, until, since FROM snapshots) AS d
), recounted AS (
    SELECT d.merchant_id, d.mode, d.until, p.provider, SUM(p.transactions) AS transactions, SUM(p.available) AS available, SUM(p.held) AS held,
        SUM(p.margin) AS margin, SUM(p.cost) AS cost, SUM(p.deposit) AS deposit, SUM(p.adjustments) AS adjustments
    FROM days AS d
    JOIN LATERAL (
        SELECT s.provider, s.transactions, s.available, s.held, s.margin, s.cost, s.deposit, s.adjustments FROM ledger_snapshots AS s
        WHERE s.merchant_id = d.merchant_id AND s.mode = d.mode AND s.until = d.follows
        UNION ALL
        SELECT l.provider, 1, l.available, l.held, l.margin, l.cost, l.deposit, l.adjustments FROM ledger_transactions AS l
        WHERE l.merchant_id = d.merchant_id AND l.mode = d.mode AND l.at >= COALESCE(d.follows, TIMESTAMPTZ '0001-01-01 00:00:00Z') AND l.at < d.until
            AND (l.written_at - l.at > INTERVAL '1 hour') IS NOT TRUE
    ) AS p ON TRUE
    WHERE d.until > d.since
    GROUP BY d.merchant_id, d.mode, d.until, p.provider
), unverified AS (
    SELECT merchant_id, mode, until, provider, transactions, available, held, margin, cost, deposit, adjustments FROM snapshots
    WHERE until > since
)
SELECT 'balanced'::TEXT AS invariant, ''::TEXT AS merchant_id, ''::TEXT AS mode, ''::TEXT AS subject, ''::TEXT AS detail, count(*) AS checked FROM fresh
UNION ALL
(SELECT 'balanced', t.merchant_id, t.mode, t.subject::TEXT,
    t.kind || ' of attempt ' || t.attempt::TEXT || ' sums to ' || (t.available + t.held + t.margin + t.cost + t.deposit + t.adjustments)::TEXT, 0
FROM fresh AS t
WHERE t.available + t.held + t.margin + t.cost + t.deposit + t.adjustments <> 0
LIMIT @most)
UNION ALL
SELECT 'balances', '', '', '', '', count(*) FROM balances WHERE kept OR posted
UNION ALL
(SELECT 'balances', b.merchant_id, b.mode, '',
    'the balance is ' || COALESCE(b.available::TEXT, 'none') || ' available, ' || COALESCE(b.held::TEXT, 'none') || ' held; its entries sum to '
        || b.posted_available::TEXT || ', ' || b.posted_held::TEXT, 0
FROM balances AS b
WHERE b.posted AND NOT b.kept OR b.available <> b.posted_available OR b.held <> b.posted_held OR b.available < 0 OR b.held < 0
LIMIT @most)
UNION ALL
SELECT 'held', '', '', '', '', count(*) FROM balances WHERE kept
UNION ALL
(SELECT 'held', b.merchant_id, b.mode, '', COALESCE(b.held::TEXT, 'none') || ' is held, for movements under way over ' || b.held_for::TEXT, 0
FROM balances AS b
WHERE COALESCE(b.held, 0) <> b.held_for
LIMIT @most)
UNION ALL
SELECT 'movements', '', '', '', '', count(*) FROM movements_named WHERE charge <> '' OR kind = 'order' AND connection_owner = 'platform'
UNION ALL
(SELECT 'movements', m.merchant_id, m.mode, m.id::TEXT,
    'attempt ' || m.attempt::TEXT || ' of ' || m.reference || ', with transactions of ' || COALESCE(s.attempts, 0)::TEXT || ' attempts', 0
FROM movements_named AS m
LEFT JOIN spans AS s ON s.merchant_id = m.merchant_id AND s.mode = m.mode AND s.subject = m.id
WHERE m.charge <> '' AND (s.subject IS NULL OR s.last_attempt <> m.attempt) OR m.charge = '' AND s.last_attempt >= m.attempt
    OR s.first_attempt < 1 OR m.charge = '' AND m.kind = 'order' AND m.connection_owner = 'platform' -- bought for nothing
LIMIT @most)
UNION ALL
SELECT 'attempts', '', '', '', '', count(*) FROM standing
UNION ALL
(SELECT 'attempts', x.merchant_id, x.mode, x.id::TEXT,
    'attempt ' || a.attempt::TEXT || ' has ' || a.begun || ', ' || a.ended || ', ' || a.reversed
        || ' over ' || a.available::TEXT || ', ' || a.held::TEXT || ', ' || a.margin::TEXT || ', ' || a.cost::TEXT || ', ' || a.deposit::TEXT
        || '; it should have ' || x.begun || ', ' || x.ended || ', ' || x.reversed
        || ' over ' || x.available::TEXT || ', ' || x.held::TEXT || ', ' || x.margin::TEXT || ', ' || (-x.cost)::TEXT || ', ' || x.cost::TEXT, 0
FROM expected AS x
JOIN attempts AS a ON a.merchant_id = x.merchant_id AND a.mode = x.mode AND a.subject = x.id AND a.attempt = x.attempt
WHERE a.begun <> x.begun OR a.begun = 'none' OR a.ended <> x.ended OR a.reversed <> x.reversed
    OR a.available <> x.available OR a.held <> x.held OR a.margin <> x.margin OR a.cost <> -x.cost OR a.deposit <> x.cost OR a.adjustments <> 0
LIMIT @most)
UNION ALL
SELECT 'subjects', '', '', '', '', count(*) FROM fresh
UNION ALL
(SELECT 'subjects', t.merchant_id, t.mode, t.subject::TEXT, t.kind || ' of attempt ' || t.attempt::TEXT || ' belongs to nothing', 0
FROM fresh AS t
LEFT JOIN movements_named AS m ON m.id = t.subject AND m.merchant_id = t.merchant_id AND m.mode = t.mode
LEFT JOIN adjusted AS a ON a.id = t.subject AND a.merchant_id = t.merchant_id AND a.mode = t.mode AND t.attempt = 0 AND t.step = 1
WHERE m.id IS NULL AND a.id IS NULL
LIMIT @most)
UNION ALL
SELECT 'adjustments', '', '', '', '', count(*) FROM adjusted WHERE fresh
UNION ALL
(SELECT 'adjustments', a.merchant_id, a.mode, a.id::TEXT, a.reference || ' over ' || a.amount::TEXT || ' is not posted so', 0
FROM adjusted AS a
LEFT JOIN LATERAL (
    SELECT l.subject FROM ledger_transactions AS l
    WHERE l.merchant_id = a.merchant_id AND l.mode = a.mode AND l.subject = a.id AND l.attempt = 0
        AND l.kind = CASE WHEN a.amount < 0 THEN 'debit' ELSE 'credit' END AND l.available = a.amount AND l.held = 0 AND l.margin = 0
        AND l.cost = 0 AND l.deposit = 0 AND l.adjustments = -a.amount
    OFFSET 0
) AS t ON TRUE
WHERE a.fresh AND t.subject IS NULL
LIMIT @most)
UNION ALL
SELECT 'snapshots', '', '', '', '', count(*) FROM unverified
UNION ALL
(SELECT 'snapshots', COALESCE(s.merchant_id, r.merchant_id), COALESCE(s.mode, r.mode), '',
    'that of ' || COALESCE(s.until, r.until)::TEXT || ' at ''' || COALESCE(s.provider, r.provider) || ''' says '
        || COALESCE(s.available, 0)::TEXT || ', ' || COALESCE(s.held, 0)::TEXT || ', ' || COALESCE(s.margin, 0)::TEXT || ', '
        || COALESCE(s.cost, 0)::TEXT || ', ' || COALESCE(s.deposit, 0)::TEXT || ', ' || COALESCE(s.adjustments, 0)::TEXT
        || ' of ' || COALESCE(s.transactions, 0)::TEXT || '; the one before and the entries since sum to '
        || COALESCE(r.available, 0)::TEXT || ', ' || COALESCE(r.held, 0)::TEXT || ', ' || COALESCE(r.margin, 0)::TEXT || ', '
        || COALESCE(r.cost, 0)::TEXT || ', ' || COALESCE(r.deposit, 0)::TEXT || ', ' || COALESCE(r.adjustments, 0)::TEXT
        || ' of ' || COALESCE(r.transactions, 0)::TEXT, 0
FROM unverified AS s
FULL JOIN recounted AS r ON r.merchant_id = s.merchant_id AND r.mode = s.mode AND r.until = s.until AND r.provider = s.provider
WHERE s.merchant_id IS NULL OR r.merchant_id IS NULL OR s.transactions <> r.transactions OR s.available <> r.available OR s.held <> r.held
    OR s.margin <> r.margin OR s.cost <> r.cost OR s.deposit <> r.deposit OR s.adjustments <> r.adjustments
LIMIT @most)
UNION ALL
SELECT 'zero', '', '', '', '', count(*) FROM balances WHERE posted
UNION ALL
(SELECT 'zero', b.merchant_id, b.mode, '', 'everything sums to ' || (COALESCE(b.available + b.held, 0) + b.platform)::TEXT, 0
FROM balances AS b
WHERE COALESCE(b.available + b.held, 0) + b.platform <> 0
LIMIT @most);
