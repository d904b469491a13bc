-- The least recently used of the drawn amounts that are free on the account. Which of
-- those that were used in the same minute, or never, is drawn: who reserves at the same
-- moment must not want the same. An amount is free when its time is over and the
-- collection that had it has ended, which never opens again. None is, where the account
-- is another merchant's. Where another replica has reserved the amount meanwhile, the
-- constraint on reserved amounts refuses the statement.
SELECT f.amount FROM (
    SELECT d.amount, d.place, COALESCE(date_trunc('minute', u.taken_at), @beginning) AS used
    FROM (SELECT UNNEST(@drawn_amounts) AS amount, UNNEST(@drawn_places) AS place) AS d
    LEFT JOIN reserved_amounts AS u ON u.account_id = @account_id AND u.amount = d.amount
    WHERE COALESCE(u.free_at, @beginning) <= @now AND NOT EXISTS (
        SELECT 1 FROM statements AS b WHERE b.account_id = @account_id AND b.merchant_id <> @merchant_id
    )
    ORDER BY used, d.place
    LIMIT 999 -- all of them, so that the rest is checked one by one
) AS f
WHERE COALESCE((
    SELECT m.state FROM reserved_amounts AS s
    JOIN movements AS m ON m.id = s.movement_id AND m.amount = s.amount
    WHERE s.account_id = @account_id AND s.amount = f.amount
), '') NOT IN ('submitting', 'acknowledged', 'pending')
ORDER BY f.used, f.place
LIMIT 1
