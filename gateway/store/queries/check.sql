-- name: LedgerCounts :many
-- How many rows each invariant is checked on.
SELECT 'balanced'::TEXT AS invariant, count(*) AS checked FROM ledger_transactions
UNION ALL
SELECT 'balances', count(*) FROM (
    SELECT merchant_id, mode FROM ledger_balances UNION SELECT merchant_id, mode FROM ledger_transactions
) AS owners
UNION ALL
SELECT 'held', count(*) FROM ledger_balances
UNION ALL
SELECT 'movements', count(*) FROM movements WHERE charge <> '' OR kind = 'order' AND connection_owner = 'platform'
UNION ALL
SELECT 'attempts', count(*) FROM (
    SELECT DISTINCT t.subject, t.attempt FROM ledger_transactions AS t JOIN movements AS m ON m.id = t.subject
) AS attempts
UNION ALL
SELECT 'subjects', count(*) FROM ledger_transactions
UNION ALL
SELECT 'adjustments', count(*) FROM ledger_adjustments WHERE state = 'posted'
UNION ALL
SELECT 'zero', count(*) FROM (SELECT DISTINCT mode FROM ledger_transactions) AS modes;

-- name: LedgerOffences :many
-- The rows that break an invariant.
WITH entries AS (
    SELECT merchant_id, mode, SUM(available) AS available, SUM(held) AS held FROM ledger_transactions
    GROUP BY merchant_id, mode
), under_way AS (
    SELECT merchant_id, mode, SUM(amount) AS held FROM movements
    WHERE charge = 'held' AND state IN ('submitting', 'acknowledged', 'pending')
    GROUP BY merchant_id, mode
), attempts AS (
    SELECT t.subject, t.attempt, COALESCE(MIN(CASE WHEN t.step = 1 THEN t.kind END), 'none') AS begun,
        COALESCE(MIN(CASE WHEN t.step = 2 THEN t.kind END), 'none') AS ended,
        COALESCE(MIN(CASE WHEN t.step = 3 THEN t.kind END), 'none') AS reversed,
        SUM(t.available) AS available, SUM(t.held) AS held, SUM(t.margin) AS margin, SUM(t.cost) AS cost, SUM(t.deposit) AS deposit,
        SUM(t.adjustments) AS adjustments
    FROM ledger_transactions AS t
    GROUP BY t.subject, t.attempt
), spans AS (
    SELECT subject, count(*) AS attempts, MIN(attempt) AS first_attempt, MAX(attempt) AS last_attempt FROM attempts
    GROUP BY subject
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
    JOIN movements AS m ON m.id = a.subject
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
)
(SELECT 'balanced'::TEXT AS invariant, t.merchant_id::TEXT AS merchant_id, t.mode::TEXT AS mode, t.subject::TEXT AS subject,
    (t.kind || ' of attempt ' || t.attempt::TEXT || ' sums to '
        || (t.available + t.held + t.margin + t.cost + t.deposit + t.adjustments)::TEXT)::TEXT AS detail
FROM ledger_transactions AS t
WHERE t.available + t.held + t.margin + t.cost + t.deposit + t.adjustments <> 0
LIMIT @most)
UNION ALL
(SELECT 'balances', COALESCE(b.merchant_id, e.merchant_id), COALESCE(b.mode, e.mode), '',
    'the balance is ' || COALESCE(b.available::TEXT, 'none') || ' available, ' || COALESCE(b.held::TEXT, 'none') || ' held; its entries sum to '
        || COALESCE(e.available, 0)::TEXT || ', ' || COALESCE(e.held, 0)::TEXT
FROM ledger_balances AS b
FULL JOIN entries AS e ON e.merchant_id = b.merchant_id AND e.mode = b.mode
WHERE b.merchant_id IS NULL OR b.available <> COALESCE(e.available, 0) OR b.held <> COALESCE(e.held, 0) OR b.available < 0 OR b.held < 0
LIMIT @most)
UNION ALL
(SELECT 'held', COALESCE(b.merchant_id, u.merchant_id), COALESCE(b.mode, u.mode), '',
    COALESCE(b.held::TEXT, 'none') || ' is held, for movements under way over ' || COALESCE(u.held, 0)::TEXT
FROM ledger_balances AS b
FULL JOIN under_way AS u ON u.merchant_id = b.merchant_id AND u.mode = b.mode
WHERE COALESCE(b.held, 0) <> COALESCE(u.held, 0)
LIMIT @most)
UNION ALL
(SELECT 'movements', m.merchant_id, m.mode, m.id::TEXT,
    'attempt ' || m.attempt::TEXT || ' of ' || m.reference || ', with transactions of ' || COALESCE(s.attempts, 0)::TEXT || ' attempts'
FROM movements AS m
LEFT JOIN spans AS s ON s.subject = m.id
WHERE m.charge <> '' AND (s.subject IS NULL OR s.last_attempt <> m.attempt) OR m.charge = '' AND s.last_attempt >= m.attempt
    OR s.first_attempt < 1 OR m.charge = '' AND m.kind = 'order' AND m.connection_owner = 'platform' -- bought for nothing
LIMIT @most)
UNION ALL
(SELECT 'attempts', x.merchant_id, x.mode, x.id::TEXT,
    'attempt ' || a.attempt::TEXT || ' has ' || a.begun || ', ' || a.ended || ', ' || a.reversed
        || ' over ' || a.available::TEXT || ', ' || a.held::TEXT || ', ' || a.margin::TEXT || ', ' || a.cost::TEXT || ', ' || a.deposit::TEXT
        || '; it should have ' || x.begun || ', ' || x.ended || ', ' || x.reversed
        || ' over ' || x.available::TEXT || ', ' || x.held::TEXT || ', ' || x.margin::TEXT || ', ' || (-x.cost)::TEXT || ', ' || x.cost::TEXT
FROM expected AS x
JOIN attempts AS a ON a.subject = x.id AND a.attempt = x.attempt
WHERE a.begun <> x.begun OR a.begun = 'none' OR a.ended <> x.ended OR a.reversed <> x.reversed
    OR a.available <> x.available OR a.held <> x.held OR a.margin <> x.margin OR a.cost <> -x.cost OR a.deposit <> x.cost OR a.adjustments <> 0
LIMIT @most)
UNION ALL
(SELECT 'subjects', t.merchant_id, t.mode, t.subject::TEXT, t.kind || ' of attempt ' || t.attempt::TEXT || ' belongs to nothing'
FROM ledger_transactions AS t
LEFT JOIN movements AS m ON m.id = t.subject AND m.merchant_id = t.merchant_id AND m.mode = t.mode
LEFT JOIN ledger_adjustments AS a ON a.id = t.subject AND a.merchant_id = t.merchant_id AND a.mode = t.mode AND a.state = 'posted'
    AND t.attempt = 0 AND t.step = 1
WHERE m.id IS NULL AND a.id IS NULL
LIMIT @most)
UNION ALL
(SELECT 'adjustments', a.merchant_id, a.mode, a.id::TEXT, a.reference || ' over ' || a.amount::TEXT || ' is not posted so'
FROM ledger_adjustments AS a
LEFT JOIN ledger_transactions AS t ON t.merchant_id = a.merchant_id AND t.mode = a.mode AND t.subject = a.id
    AND t.attempt = 0 AND t.kind = CASE WHEN a.amount < 0 THEN 'debit' ELSE 'credit' END
    AND t.available = a.amount AND t.held = 0 AND t.margin = 0 AND t.cost = 0 AND t.deposit = 0 AND t.adjustments = -a.amount
WHERE a.state = 'posted' AND t.subject IS NULL
LIMIT @most)
UNION ALL
(SELECT 'zero', '', parts.mode, '', 'everything sums to ' || SUM(parts.amount)::TEXT
FROM (
    SELECT mode, available + held AS amount FROM ledger_balances
    UNION ALL
    SELECT mode, margin + cost + deposit + adjustments FROM ledger_transactions
) AS parts
GROUP BY parts.mode
HAVING SUM(parts.amount) <> 0
LIMIT @most);
