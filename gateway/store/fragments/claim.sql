-- Writes an operator's claim on money: made alone, or for another operator to confirm. What
-- is made stays.
INSERT INTO claims (merchant_id, mode, subject, movement_id, payment, operator, amount, reason, at, alone)
SELECT @merchant_id, @mode, @subject, @id, @claimed_payment, @operator, @amount, @reason, @now, @claimed_alone
FROM room
ON CONFLICT (merchant_id, mode, subject) DO UPDATE SET
    operator = excluded.operator, amount = excluded.amount, reason = excluded.reason, at = excluded.at, alone = excluded.alone
WHERE claims.confirmed_by IS NULL AND NOT claims.alone
RETURNING claims.subject
