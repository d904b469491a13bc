-- Assigns a payment to a collection by an operator's word, if it still stands where
-- the operator saw it.
UPDATE statement_lines SET state = 'matched', movement_id = @to_movement, operator = @operator, reason = @reason
WHERE account_id = @account_id AND payment = @payment AND state = @line_state AND reversed_at IS NULL AND paid
    AND (movement_id = @from_movement OR movement_id IS NULL AND @from_movement IS NULL)
RETURNING payment
