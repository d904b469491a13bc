-- Takes the movement's row as the caller saw it. Who saw another one decides anew.
UPDATE polls SET due = @next_poll, misses = 0, version = polls.version + 1
WHERE polls.movement_id = @id AND polls.attempt = @attempt AND polls.version = @poll_version
RETURNING polls.movement_id, polls.asked_at
