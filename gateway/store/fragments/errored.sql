-- Keeps that the provider has ended this attempt's call with an error of its own.
UPDATE movements SET errored_at = @now, sequence = movements.sequence + 1
FROM taken
WHERE movements.id = @id AND movements.id = taken.movement_id AND movements.attempt = @attempt AND movements.state IN ('submitting', 'acknowledged')
    AND (movements.errored_at IS NULL OR movements.errored_at < movements.created_at)
RETURNING movements.id, movements.sequence
