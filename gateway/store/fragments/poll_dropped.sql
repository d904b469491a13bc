-- Nothing is left to ask, whatever was asked last.
DELETE FROM polls USING changed
WHERE polls.movement_id = @id AND polls.movement_id = changed.id
RETURNING polls.movement_id
