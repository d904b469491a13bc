-- The collection that had the payment learns that it has it no more.
UPDATE movements SET sequence = movements.sequence + 1
FROM assigned
WHERE movements.id = @from_movement
RETURNING movements.id, movements.sequence
