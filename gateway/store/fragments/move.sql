-- Changes the state of a movement whose poll was taken, if it is in one of the states
-- that the caller expects. What is paid from a balance ends with a posting, and nothing
-- else has one. The id is named, too: a plan that is made while the table is small would
-- scan it for a join, and be kept.
UPDATE movements SET
    state = @to_state, ended = @ended_in, sequence = movements.sequence + 1, updated_at = @now,
    polled_at = COALESCE(taken.asked_at, movements.polled_at),
    result = COALESCE(@result, movements.result),
    answer = COALESCE(@answer, movements.answer),
    refusal = COALESCE(@refusal, movements.refusal),
    provider_reference = COALESCE(NULLIF(@provider_reference, ''), movements.provider_reference),
    fact_id = COALESCE(NULLIF(@fact_id, ''), movements.fact_id),
    expires_at = COALESCE(@new_expires_at, movements.expires_at),
    cost = COALESCE(NULLIF(@new_cost, 0), movements.cost),
    paid_at = COALESCE(@paid_at, movements.paid_at),
    channel = COALESCE(NULLIF(@channel, ''), movements.channel),
    paid_amount = COALESCE(NULLIF(@new_paid_amount, 0), movements.paid_amount)
FROM taken
WHERE movements.id = @id AND movements.id = taken.movement_id AND movements.attempt = @attempt AND movements.state = ANY(@from_states)
    AND (NOT @ends OR (movements.charge <> '') = @posts)
RETURNING movements.id, movements.attempt, movements.sequence, movements.merchant_id, movements.mode, movements.reference,
    movements.provider, movements.connection_owner, movements.due_bucket, movements.polled_at, movements.misses, @next_poll AS due
