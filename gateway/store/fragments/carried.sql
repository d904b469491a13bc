-- A movement that a gateway of before has made or polled: its next poll stands in its
-- own row.
UPDATE movements SET due_at = NULL
FROM (SELECT b.id, b.due_at FROM movements AS b WHERE b.id = @id) AS was
WHERE movements.id = was.id AND movements.state IN ('submitting', 'acknowledged', 'pending', 'succeeded', 'expired')
RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.provider,
    movements.connection_owner, movements.due_bucket, movements.polled_at, movements.misses, COALESCE(was.due_at, @now) AS due
