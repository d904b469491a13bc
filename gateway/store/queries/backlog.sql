-- name: OverdueSince :many
-- When the first of what is due in each queue became so, one look at the index a bucket.
-- An account whose statement was never read is left out: it is due since 1970.
SELECT 'polls'::TEXT AS queue, found.since::TIMESTAMPTZ AS since FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.due AS since FROM polls AS d
    WHERE d.bucket = b.bucket AND d.due <= @now::TIMESTAMPTZ
    ORDER BY d.due, d.movement_id
    LIMIT 1
) AS found
UNION ALL
SELECT 'callbacks'::TEXT AS queue, found.since::TIMESTAMPTZ AS since FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.due_at AS since FROM callbacks AS d
    WHERE d.due_bucket = b.bucket AND d.due_at IS NOT NULL AND d.due_at <= @now::TIMESTAMPTZ
    ORDER BY d.due_at
    LIMIT 1
) AS found
UNION ALL
SELECT 'mails'::TEXT AS queue, found.since::TIMESTAMPTZ AS since FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.due_at AS since FROM mails AS d
    WHERE d.due_bucket = b.bucket AND d.due_at IS NOT NULL AND d.due_at <= @now::TIMESTAMPTZ
    ORDER BY d.due_at
    LIMIT 1
) AS found
UNION ALL
SELECT 'statements'::TEXT AS queue, found.since::TIMESTAMPTZ AS since FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.due_at AS since FROM statements AS d
    WHERE d.due_bucket = b.bucket AND d.due_at > TIMESTAMPTZ '1970-01-02' AND d.due_at <= @now::TIMESTAMPTZ
    ORDER BY d.due_at
    LIMIT 1
) AS found;

-- name: OldestOpenMovements :many
-- Goes from account to account and kind to kind, one look at the index each, and so reads
-- the first of each however many there are.
WITH RECURSIVE seen AS (
    (SELECT m.merchant_id, m.mode, m.kind, m.created_at, 1::INT8 AS step FROM movements AS m
    WHERE m.ended = ''
    ORDER BY m.merchant_id, m.mode, m.kind, m.created_at
    LIMIT 1)
    UNION ALL
    SELECT n.merchant_id, n.mode, n.kind, n.created_at, s.step + 1 FROM seen AS s
    CROSS JOIN LATERAL (
        SELECT m.merchant_id, m.mode, m.kind, m.created_at FROM movements AS m
        WHERE m.ended = '' AND (m.merchant_id, m.mode, m.kind) > (s.merchant_id, s.mode, s.kind)
        ORDER BY m.merchant_id, m.mode, m.kind, m.created_at
        LIMIT 1
    ) AS n
    WHERE s.step < @most::INT8
)
SELECT kind::TEXT AS kind, mode::TEXT AS mode, MIN(created_at)::TIMESTAMPTZ AS oldest, MAX(step)::INT8 AS steps FROM seen
GROUP BY kind, mode
ORDER BY kind, mode;

-- name: OldestWaitingCallbacks :many
-- Goes from account to account likewise. The Unix epoch where none waits in a mode.
WITH RECURSIVE seen AS (
    (SELECT c.merchant_id, c.mode, 1::INT8 AS step FROM callbacks AS c
    WHERE c.state IN ('waiting', 'gone', 'dead')
    ORDER BY c.merchant_id, c.mode
    LIMIT 1)
    UNION ALL
    SELECT n.merchant_id, n.mode, s.step + 1 FROM seen AS s
    CROSS JOIN LATERAL (
        SELECT c.merchant_id, c.mode FROM callbacks AS c
        WHERE c.state IN ('waiting', 'gone', 'dead') AND (c.merchant_id, c.mode) > (s.merchant_id, s.mode)
        ORDER BY c.merchant_id, c.mode
        LIMIT 1
    ) AS n
    WHERE s.step < @most::INT8
)
SELECT s.mode::TEXT AS mode, COALESCE(MIN(w.created_at), TIMESTAMPTZ '1970-01-01')::TIMESTAMPTZ AS oldest, MAX(s.step)::INT8 AS steps FROM seen AS s
LEFT JOIN LATERAL (
    SELECT c.created_at FROM callbacks AS c
    WHERE c.merchant_id = s.merchant_id AND c.mode = s.mode AND c.state = 'waiting' AND c.state IN ('waiting', 'gone', 'dead')
    ORDER BY c.created_at
    LIMIT 1
) AS w ON TRUE
GROUP BY s.mode
ORDER BY s.mode;

-- name: OldestWaitingMail :one
-- Of the first hundred of each bucket: those that wait longest are due first, but for
-- hours that their tries put between them. The Unix epoch where none waits.
SELECT COALESCE(MIN(w.created_at), TIMESTAMPTZ '1970-01-01')::TIMESTAMPTZ AS oldest FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.created_at FROM mails AS d WHERE d.due_bucket = b.bucket AND d.due_at IS NOT NULL ORDER BY d.due_at LIMIT 100
) AS w;
