-- Ends the waiting of an adjustment, by another operator than the one who requested
-- it. No row comes back when it does not wait, that operator decides, or the balance
-- is too small.
UPDATE ledger_adjustments SET state = @to_state, decided_by = @operator, decided_at = @now
FROM ledger_balances AS b
WHERE ledger_adjustments.merchant_id = @merchant_id AND ledger_adjustments.mode = @mode AND ledger_adjustments.reference = @reference
    AND ledger_adjustments.amount = @amount AND ledger_adjustments.state = 'waiting' AND ledger_adjustments.requested_by <> @operator
    AND b.merchant_id = @merchant_id AND b.mode = @mode
    AND (@to_state <> 'posted' OR b.available + ledger_adjustments.amount >= 0)
RETURNING ledger_adjustments.merchant_id, ledger_adjustments.mode, ledger_adjustments.id, 0 AS attempt, '' AS provider
