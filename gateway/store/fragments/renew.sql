-- Lets a movement be sent again that no provider has confirmed, as operators have
-- decided. The time in which that may buy counts from their decision, once.
UPDATE movements SET send_by = @new_send_by, sequence = movements.sequence + 1
FROM taken
WHERE movements.id = @id AND movements.id = taken.movement_id AND movements.attempt = @attempt AND movements.state IN ('submitting', 'acknowledged')
    AND movements.send_by < @new_send_by
RETURNING movements.id, movements.sequence
