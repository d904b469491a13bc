-- Takes an exception off the list, by an operator's word. No row comes back when it is
-- not open.
UPDATE exceptions SET resolved_at = @now, resolved_by = @operator, resolution = @resolution
WHERE exceptions.merchant_id = @merchant_id AND exceptions.mode = @mode AND exceptions.subject = @subject AND exceptions.reason = @reason
    AND exceptions.fact_id = @fact_id AND exceptions.resolved_at IS NULL
RETURNING exceptions.merchant_id
