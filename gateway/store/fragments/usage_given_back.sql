-- An amount below zero is counted again, whatever the limit is: the money has moved.
UPDATE usage SET used = GREATEST(usage.used - s.amount, 0), ceiling = GREATEST(usage.ceiling, usage.used - s.amount)
FROM changed, (
    SELECT UNNEST(@usage_names) AS name, UNNEST(@usage_periods) AS period, UNNEST(@usage_amounts) AS amount
) AS s
WHERE usage.merchant_id = changed.merchant_id AND usage.mode = changed.mode AND usage.name = s.name AND usage.period = s.period
RETURNING usage.merchant_id
