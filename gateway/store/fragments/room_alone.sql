-- Room for what an operator posts alone: no row comes back when the operator has posted
-- more for the merchant since the sum of the day was read, or the balance is too small.
INSERT INTO adjusted_alone (requested_by, merchant_id, mode, times)
SELECT @operator, b.merchant_id, b.mode, @alone_before + 1
FROM ledger_balances AS b
WHERE b.merchant_id = @merchant_id AND b.mode = @mode AND b.available + @amount >= 0
ON CONFLICT (requested_by, merchant_id, mode) DO UPDATE SET times = adjusted_alone.times + 1
WHERE adjusted_alone.times = @alone_before
RETURNING adjusted_alone.times AS amount
