-- Writes an operator's credit or debit. No row comes back when the reference is taken,
-- the merchant has no balance, or too little for what is posted at once.
INSERT INTO ledger_adjustments (merchant_id, mode, reference, id, amount, reason, state, requested_by, requested_at)
SELECT b.merchant_id, b.mode, @reference, @id, @amount, @reason, @to_state, @operator, @now
FROM ledger_balances AS b, room
WHERE b.merchant_id = @merchant_id AND b.mode = @mode AND (@to_state <> 'posted' OR b.available + @amount >= 0)
ON CONFLICT (merchant_id, mode, reference) DO NOTHING
RETURNING ledger_adjustments.merchant_id, ledger_adjustments.mode, ledger_adjustments.id, 0 AS attempt, '' AS provider
