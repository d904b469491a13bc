-- The first merchant that collects on an account owns it. Where the account became
-- another merchant's meanwhile, its owner that may not be NULL refuses the statement.
-- A new sale has it read soon, which is so already where others have just been made.
-- Where a reading may begin before this is committed, its row is written all the same:
-- that reading waits for the sale, or else would rest without having seen it.
INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through, due_bucket, due_at)
SELECT @account_id, changed.merchant_id, changed.mode, changed.provider, '', @beginning, @account_bucket, @reading_due FROM changed
WHERE NOT EXISTS (SELECT 1 FROM statements AS b WHERE b.account_id = @account_id AND b.due_at > @reading_first AND b.due_at <= @reading_due)
ON CONFLICT (account_id) DO UPDATE SET
    merchant_id = CASE WHEN statements.merchant_id = excluded.merchant_id THEN excluded.merchant_id END,
    due_at = LEAST(statements.due_at, excluded.due_at)
RETURNING account_id
