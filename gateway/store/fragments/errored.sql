-- Keeps that the provider has ended this attempt's call with an error of its own.
UPDATE movements SET errored_at = @now, due_at = @next_poll, sequence = movements.sequence + 1
WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state IN ('submitting', 'acknowledged')
    AND (movements.errored_at IS NULL OR movements.errored_at < movements.created_at)
RETURNING movements.id, movements.sequence
