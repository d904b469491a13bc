-- Records a fact beside the state of a movement, which stays: late money, money that went
-- back or came again, another amount than the one asked for. It is weighed by all that was
-- seen, so the sequence is the guard, and whoever comes second weighs it anew.
UPDATE movements SET
    sequence = movements.sequence + 1, updated_at = @now, ended = @recorded_ended,
    polled_at = COALESCE((SELECT p.asked_at FROM polls AS p WHERE p.movement_id = @id), movements.polled_at),
    paid_late_at = COALESCE(@paid_late_at, movements.paid_late_at),
    reversed_at = @returned_at,
    returns = @returns,
    paid_amount = COALESCE(NULLIF(@new_paid_amount, 0), movements.paid_amount)
WHERE movements.id = @id AND movements.attempt = @attempt AND movements.sequence = @seen_sequence
    AND (NOT @gives_back OR (movements.charge <> '') = @posts)
RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
    movements.provider, movements.connection_owner, movements.due_bucket, movements.polled_at, movements.misses, @next_poll AS due
