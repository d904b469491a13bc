-- Replaces the result of a succeeded movement with a fuller one, if it still has the
-- one that the caller saw. The state stays.
UPDATE movements SET result = @result, sequence = movements.sequence + 1
WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = 'succeeded' AND movements.reversed_at IS NULL
    AND COALESCE(movements.result, '') = @earlier_result
RETURNING movements.id, movements.sequence
