-- Records a fact after the end of a movement, once: late money, or a reversal of a
-- success, or of late money that the caller saw. The state stays. A second fact of
-- the same sort is only an exception.
UPDATE movements SET
    sequence = movements.sequence + 1, updated_at = @now,
    polled_at = COALESCE((SELECT p.asked_at FROM polls AS p WHERE p.movement_id = @id), movements.polled_at),
    paid_late_at = COALESCE(@paid_late_at, movements.paid_late_at),
    reversed_at = COALESCE(@reversed_at, movements.reversed_at)
WHERE movements.id = @id
    AND (movements.state = ANY(@from_states) OR @seen_late AND movements.paid_late_at IS NOT NULL)
    AND (@paid_late_at IS NULL OR movements.paid_late_at IS NULL)
    AND (@reversed_at IS NULL OR movements.reversed_at IS NULL AND (movements.charge <> '') = @posts)
RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
    movements.provider
