-- Writes the matches of new payments. They are one document by the payments' names:
-- joined to an array, a page costs its square wherever the planner takes the open
-- payments for few.
UPDATE statement_lines SET
    state = (@matches -> statement_lines.payment) ->> 'state',
    movement_id = ((@matches -> statement_lines.payment) ->> 'movement')::UUID
WHERE statement_lines.account_id = @account_id AND statement_lines.payment = ANY(@payments) AND statement_lines.state = 'new'
RETURNING @merchant_id AS merchant_id, @mode AS mode, 'payment ' || statement_lines.payment AS subject,
    (@matches -> statement_lines.payment) ->> 'reason' AS reason, statement_lines.line_id AS fact_id, @provider AS provider,
    (@matches -> statement_lines.payment) ->> 'detail' AS detail, @now AS at, statement_lines.payment
