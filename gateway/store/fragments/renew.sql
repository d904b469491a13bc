-- Lets a movement be sent again that no provider has confirmed, as operators have
-- decided. The time in which that may buy counts from their decision, once.
UPDATE movements SET send_by = @new_send_by, due_at = @next_poll, misses = 0, sequence = movements.sequence + 1
WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state IN ('submitting', 'acknowledged')
    AND movements.send_by < @new_send_by
RETURNING movements.id, movements.sequence
