UPDATE ledger_balances SET available = ledger_balances.available + @posted_available, held = ledger_balances.held + @posted_held
FROM changed
WHERE ledger_balances.merchant_id = changed.merchant_id AND ledger_balances.mode = changed.mode
RETURNING ledger_balances.merchant_id
