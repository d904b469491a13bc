-- name: AnswerMovement :one
-- Adds the call's answer to a movement that another fact had moved on before, so
-- that a replay finds the first answer.
UPDATE movements SET result = COALESCE(sqlc.narg(result), movements.result), answer = sqlc.narg(answer),
    provider_reference = COALESCE(NULLIF(@provider_reference::TEXT, ''), provider_reference),
    expires_at = COALESCE(sqlc.narg(expires_at), expires_at)
WHERE id = @id AND attempt = @attempt AND answer IS NULL AND state IN ('pending', 'succeeded', 'failed', 'expired')
RETURNING id;

-- name: PaidOut :many
-- The transfers of an account that have succeeded by the provider's own word, of some
-- amounts. Where nothing names the account, other credentials may be another's. It goes by
-- the index of times (so + 0): a span of amounts may have most transfers of all times.
SELECT sqlc.embed(m) FROM movements AS m
WHERE m.merchant_id = @merchant_id AND m.mode = @mode AND m.kind = 'transfer' AND m.amount + 0 BETWEEN @least::INT8 AND @highest::INT8 AND m.created_at >= @since
    AND m.provider = @provider AND m.connection_account = @account AND (m.connection_account <> '' OR m.connection_version = @version)
    AND m.ended = 'succeeded' AND m.reversed_at IS NULL AND m.id <> @id
    AND NOT EXISTS (SELECT 1 FROM overrides AS o WHERE o.movement_id = m.id AND o.attempt = m.attempt)
ORDER BY m.created_at DESC, m.id DESC
LIMIT @most;

-- name: ListMovements :many
-- The newest of each state by the index, and of these the newest. Of the states that
-- end nothing the index has one list.
SELECT sqlc.embed(m) FROM movements AS m
JOIN (
    SELECT found.id FROM (SELECT unnest(@states::TEXT[]) AS state, unnest(@ends::TEXT[]) AS ended) AS s
    CROSS JOIN LATERAL (
        SELECT l.id, l.created_at FROM movements AS l
        WHERE l.merchant_id = @merchant_id::TEXT AND l.mode = @mode::TEXT AND l.kind = @kind::TEXT AND l.ended = s.ended AND l.state = s.state
            AND l.created_at >= @since::TIMESTAMPTZ AND l.created_at < @before::TIMESTAMPTZ
            AND (l.created_at, l.id) < (@after_at::TIMESTAMPTZ, @after::UUID)
            AND (@prefix::TEXT = '' OR left(l.reference, length(@prefix::TEXT)) = @prefix::TEXT)
            AND (@search::TEXT = '' OR l.amount = @amount::INT8 OR l.provider_reference = @search::TEXT
                OR l.fingerprint = '' AND strpos(l.reference, @search::TEXT) > 0
                OR @mail::TEXT <> '' AND strpos(lower(l.request), @mail::TEXT) > 0)
        ORDER BY l.created_at DESC, l.id DESC
        LIMIT @most
    ) AS found
    ORDER BY found.created_at DESC, found.id DESC
    LIMIT @most
) AS listed ON listed.id = m.id
ORDER BY m.created_at DESC, m.id DESC;

-- name: MovementFigures :many
-- A listing in numbers, by spans: a row for each state and channel, and one without a state
-- for how long those took that were paid. It reads by the index of the list, at most so
-- many rows in all: who gets that many has to ask for less.
WITH found AS (
    SELECT d.span, s.state, s.ended, l.channel, l.amount,
        CASE WHEN s.ended = 'succeeded' THEN GREATEST(floor(EXTRACT(EPOCH FROM l.paid_at - l.created_at)), 0)::INT8 END AS seconds
    FROM (SELECT unnest(@spans::INT4[]) AS span, unnest(@since::TIMESTAMPTZ[]) AS since, unnest(@before::TIMESTAMPTZ[]) AS before) AS d
    CROSS JOIN (SELECT unnest(@states::TEXT[]) AS state, unnest(@ends::TEXT[]) AS ended) AS s
    CROSS JOIN LATERAL (
        SELECT m.channel, m.amount, m.paid_at, m.created_at FROM movements AS m
        WHERE m.merchant_id = @merchant_id::TEXT AND m.mode = @mode::TEXT AND m.kind = @kind::TEXT AND m.ended = s.ended AND m.state = s.state
            AND m.created_at >= d.since AND m.created_at < d.before
            AND (@search::TEXT = '' OR m.amount = @amount::INT8 OR m.provider_reference = @search::TEXT
                OR m.fingerprint = '' AND strpos(m.reference, @search::TEXT) > 0
                OR @mail::TEXT <> '' AND strpos(lower(m.request), @mail::TEXT) > 0)
        ORDER BY m.created_at DESC, m.id DESC
        LIMIT @most
    ) AS l
    LIMIT @most
)
SELECT span::INT4, state::TEXT, ended::TEXT, channel::TEXT, count(*) AS n, sum(amount)::INT8 AS amount, 0::INT8 AS median, 0::INT8 AS slow
FROM found GROUP BY span, state, ended, channel
UNION ALL
SELECT span, '', '', '', count(*), 0, percentile_disc(0.5) WITHIN GROUP (ORDER BY seconds), percentile_disc(0.95) WITHIN GROUP (ORDER BY seconds)
FROM found WHERE seconds IS NOT NULL GROUP BY span;

-- name: MovementsByReference :many
-- Goes by the key, of each merchant: it costs more the more merchants there are, however
-- many movements they have. An index of references would make every reservation slower.
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
JOIN (
    SELECT found.id FROM merchants AS t
    CROSS JOIN LATERAL (
        SELECT k.id, k.created_at FROM movements AS k
        WHERE k.merchant_id = t.merchant_id AND k.mode = ANY(@modes::TEXT[]) AND k.kind = ANY(@kinds::TEXT[]) AND k.reference = @reference::TEXT
        LIMIT @most
    ) AS found
    ORDER BY found.created_at DESC
    LIMIT @most
) AS named ON named.id = m.id
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
ORDER BY m.created_at DESC;

-- name: MovementsByOthersID :many
-- The few first, so that PostgreSQL does not read all polls for them.
SELECT sqlc.embed(m), p.version, p.asked_at, p.due, p.misses FROM movements AS m
JOIN (
    SELECT k.id FROM movements AS k
    WHERE k.due_bucket = ANY(@buckets::INT4[]) AND k.created_at >= @since AND k.created_at < @before
        AND (k.request_id = @id::TEXT OR k.decision_id = @id::TEXT OR k.provider_reference = @id::TEXT)
    ORDER BY k.created_at DESC
    LIMIT @most
) AS found ON found.id = m.id
LEFT JOIN polls AS p ON p.movement_id = m.id AND p.attempt = m.attempt
ORDER BY m.created_at DESC;
