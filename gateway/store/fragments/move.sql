-- Changes the state of a movement, if it is still in one of the states that the
-- caller expects. What is paid from a balance ends with a posting, and nothing else
-- has one.
UPDATE movements SET
    state = @to_state, sequence = movements.sequence + 1, updated_at = @now, misses = 0, due_at = @next_poll,
    result = COALESCE(@result, movements.result),
    answer = COALESCE(@answer, movements.answer),
    refusal = COALESCE(@refusal, movements.refusal),
    provider_reference = COALESCE(NULLIF(@provider_reference, ''), movements.provider_reference),
    fact_id = COALESCE(NULLIF(@fact_id, ''), movements.fact_id),
    expires_at = COALESCE(@new_expires_at, movements.expires_at),
    cost = COALESCE(NULLIF(@new_cost, 0), movements.cost),
    paid_at = COALESCE(@paid_at, movements.paid_at),
    channel = COALESCE(NULLIF(@channel, ''), movements.channel)
WHERE movements.id = @id AND movements.attempt = @attempt AND movements.state = ANY(@from_states)
    AND (movements.polled_at IS NULL OR movements.polled_at <= @polled_before)
    AND (NOT @ends OR (movements.charge <> '') = @posts)
RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
    movements.provider
