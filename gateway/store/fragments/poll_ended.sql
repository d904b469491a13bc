-- Likewise, where nothing is left to ask: nobody who has not asked yet asks any more.
DELETE FROM polls
WHERE polls.movement_id = @id AND polls.attempt = @attempt AND polls.version = @poll_version
RETURNING polls.movement_id, polls.asked_at
