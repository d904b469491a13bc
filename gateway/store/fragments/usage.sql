-- A count of nothing opens a row, and leaves one that is there.
INSERT INTO usage (merchant_id, mode, name, period, used, ceiling)
SELECT changed.merchant_id, changed.mode, s.name, s.period, s.amount, s.ceiling
FROM changed, (
    SELECT UNNEST(@usage_names) AS name, UNNEST(@usage_periods) AS period,
        UNNEST(@usage_amounts) AS amount, UNNEST(@usage_ceilings) AS ceiling
) AS s
ON CONFLICT (merchant_id, mode, name, period) DO UPDATE SET
    used = usage.used + excluded.used, ceiling = CASE WHEN excluded.used > 0 THEN excluded.ceiling ELSE usage.ceiling END
RETURNING merchant_id
