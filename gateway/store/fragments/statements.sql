-- The first merchant that collects on an account owns it. Where the account became
-- another merchant's meanwhile, its owner that may not be NULL refuses the statement.
INSERT INTO statements (account_id, merchant_id, mode, provider, cursor, through)
SELECT @account_id, changed.merchant_id, changed.mode, changed.provider, '', @beginning FROM changed
WHERE NOT EXISTS (SELECT 1 FROM statements AS b WHERE b.account_id = @account_id)
ON CONFLICT (account_id) DO UPDATE SET
    merchant_id = CASE WHEN statements.merchant_id = excluded.merchant_id THEN excluded.merchant_id END
RETURNING account_id
