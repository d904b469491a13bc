-- name: LeaseRates :many
-- Takes from each bucket first what is owed and then up to what is wanted, in whole
-- tokens. A bucket fills by the rate of the last ask. A row's time never goes back, so
-- whoever waited for another ask fills nothing twice, unless the clock itself was put
-- back. All replicas go by the buckets' order, so none waits for another in a circle. A
-- debt is bounded by 30 s of the rate. What did not fit into a bucket is spare for 10 s,
-- and pays what was admitted late, while the bucket was not asked. One that is not there is
-- taken to have had no room for 30 s, unless whoever had it alone has spent half of it.
INSERT INTO rates (merchant_id, mode, name, per_second, burst, tokens, as_of, spare, spare_at, owed, late, want, granted)
SELECT a.merchant_id, a.mode, a.name, a.per_second, a.burst::INT8,
    GREATEST(a.burst - a.owed - GREATEST(0, a.late - 30 * a.per_second), 0 - a.burst - 30 * a.per_second)
        - GREATEST(0, LEAST(a.want, FLOOR(a.burst - a.owed - GREATEST(0, a.late - 30 * a.per_second) + 1e-9::FLOAT8))),
    CLOCK_TIMESTAMP(), CASE WHEN 2 * a.owed < a.burst THEN GREATEST(0, 30 * a.per_second - a.late) ELSE 0 END, CLOCK_TIMESTAMP(), a.owed, a.late, a.want::INT8,
    GREATEST(0, LEAST(a.want, FLOOR(a.burst - a.owed - GREATEST(0, a.late - 30 * a.per_second) + 1e-9::FLOAT8)))::INT8
FROM (
    SELECT unnest(@merchants::TEXT[]) AS merchant_id, unnest(@modes::TEXT[]) AS mode, unnest(@names::TEXT[]) AS name,
        unnest(@paces::FLOAT8[]) AS per_second, unnest(@bursts::FLOAT8[]) AS burst,
        unnest(@debts::FLOAT8[]) AS owed, unnest(@lates::FLOAT8[]) AS late, unnest(@wants::FLOAT8[]) AS want
) AS a
ORDER BY a.merchant_id, a.mode, a.name
ON CONFLICT (merchant_id, mode, name) DO UPDATE SET
    per_second = excluded.per_second, burst = excluded.burst,
    owed = excluded.owed, late = excluded.late, want = excluded.want,
    as_of = CASE WHEN rates.as_of > excluded.as_of + '10 seconds'::INTERVAL THEN excluded.as_of ELSE GREATEST(rates.as_of, excluded.as_of) END,
    tokens = GREATEST(
        LEAST(
            rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8),
            LEAST(rates.burst, excluded.burst)::FLOAT8
        ) - excluded.owed - GREATEST(0, excluded.late - GREATEST(0,
            rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8) - LEAST(rates.burst, excluded.burst)::FLOAT8
        ) - CASE WHEN rates.spare_at > excluded.as_of - '10 seconds'::INTERVAL THEN rates.spare ELSE 0 END),
        0 - excluded.burst::FLOAT8 - 30 * excluded.per_second
    ) - GREATEST(0, LEAST(excluded.want::FLOAT8, FLOOR(LEAST(
        rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8),
        LEAST(rates.burst, excluded.burst)::FLOAT8
    ) - excluded.owed - GREATEST(0, excluded.late - GREATEST(0,
        rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8) - LEAST(rates.burst, excluded.burst)::FLOAT8
    ) - CASE WHEN rates.spare_at > excluded.as_of - '10 seconds'::INTERVAL THEN rates.spare ELSE 0 END) + 1e-9::FLOAT8))),
    spare = GREATEST(0, GREATEST(0,
        rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8) - LEAST(rates.burst, excluded.burst)::FLOAT8
    ) + CASE WHEN rates.spare_at > excluded.as_of - '10 seconds'::INTERVAL THEN rates.spare ELSE 0 END - excluded.late),
    spare_at = CASE WHEN rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8)
        > LEAST(rates.burst, excluded.burst)::FLOAT8 THEN excluded.as_of ELSE rates.spare_at END,
    granted = GREATEST(0, LEAST(excluded.want::FLOAT8, FLOOR(LEAST(
        rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8),
        LEAST(rates.burst, excluded.burst)::FLOAT8
    ) - excluded.owed - GREATEST(0, excluded.late - GREATEST(0,
        rates.tokens + rates.per_second * GREATEST(0, EXTRACT(EPOCH FROM excluded.as_of - rates.as_of)::FLOAT8) - LEAST(rates.burst, excluded.burst)::FLOAT8
    ) - CASE WHEN rates.spare_at > excluded.as_of - '10 seconds'::INTERVAL THEN rates.spare ELSE 0 END) + 1e-9::FLOAT8)))::INT8
RETURNING merchant_id, mode, name, tokens, granted;

-- name: DropRates :execrows
-- Buckets that are full again: one that is not there is no different. They go by the
-- order of asks, and come to the front of it as those before them are gone.
DELETE FROM rates WHERE (merchant_id, mode, name) IN (
    SELECT r.merchant_id, r.mode, r.name FROM rates AS r
    WHERE r.as_of < CLOCK_TIMESTAMP() - '1 hour'::INTERVAL
        AND r.tokens + r.per_second * EXTRACT(EPOCH FROM CLOCK_TIMESTAMP() - r.as_of)::FLOAT8 >= r.burst
    ORDER BY r.merchant_id, r.mode, r.name
    LIMIT @most::INT8
) AND as_of < CLOCK_TIMESTAMP() - '1 hour'::INTERVAL;
