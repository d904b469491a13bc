-- name: NextFreeAmount :one
-- When the first of some amounts becomes free, and whose the account is.
SELECT b.merchant_id, COALESCE((
    SELECT MIN(s.free_at) FROM reserved_amounts AS s
    WHERE s.account_id = b.account_id AND s.amount >= @least AND s.amount <= @most
), @now::TIMESTAMPTZ)::TIMESTAMPTZ AS free_at
FROM statements AS b
WHERE b.account_id = @account_id;

-- name: ReleaseAmount :exec
DELETE FROM reserved_amounts
WHERE account_id = @account_id AND amount = @amount AND movement_id = @movement_id AND taken_at = @taken_at::TIMESTAMPTZ;
