-- Room for what an operator claims of a merchant alone: no row comes back when the operator
-- has claimed more of it since the sum of the day was read, or a debit is more than is
-- available.
INSERT INTO adjusted_alone (requested_by, merchant_id, mode, times)
SELECT @operator, @merchant_id, @mode, @alone_before + 1
WHERE @amount >= 0 OR EXISTS (
    SELECT 1 FROM ledger_balances AS b WHERE b.merchant_id = @merchant_id AND b.mode = @mode AND b.available + @amount >= 0
)
ON CONFLICT (requested_by, merchant_id, mode) DO UPDATE SET times = adjusted_alone.times + 1
WHERE adjusted_alone.times = @alone_before
RETURNING adjusted_alone.times AS amount
