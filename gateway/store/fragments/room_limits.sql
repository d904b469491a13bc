-- Where two replicas both see room for one of them, the constraint on usage refuses
-- the later statement.
SELECT @amount AS amount
WHERE NOT EXISTS (
    SELECT 1 FROM (
        SELECT UNNEST(@usage_names) AS name, UNNEST(@usage_periods) AS period,
            UNNEST(@usage_amounts) AS amount, UNNEST(@usage_ceilings) AS ceiling
    ) AS s
    LEFT JOIN usage AS u ON u.merchant_id = @merchant_id AND u.mode = @mode AND u.name = s.name AND u.period = s.period
    WHERE COALESCE(u.used, 0) + s.amount > s.ceiling
)
