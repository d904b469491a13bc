-- Where two replicas both see a balance large enough for one of them, the constraint
-- on the balance refuses the later statement.
SELECT @amount AS amount
WHERE EXISTS (
    SELECT 1 FROM ledger_balances AS b
    WHERE b.merchant_id = @merchant_id AND b.mode = @mode AND b.available >= @amount
)
