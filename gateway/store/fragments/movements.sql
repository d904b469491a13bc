-- Reserves a reference where there is room: a new row, or a row whose last attempt
-- was proven not submitted, of which nothing stays. The new attempt has the number
-- that the caller names, or the next one. No row comes back when the reference is
-- taken, or that number was passed.
INSERT INTO movements (
    merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request,
    connection_owner, connection_account, connection_version, provider_reference, fact_id, callback_url, request_id,
    policy_version, decision_id, send_by, created_at, updated_at, expires_at, misses, due_bucket,
    cost, charge, quote, fee, name_match, destination, usage, fingerprint, reservation_id
)
SELECT @merchant_id, @mode, @kind, @reference, @id, 1, @operation, @provider, 'submitting', 1, room.amount, @request,
    @connection_owner, @connection_account, @connection_version, '', '', @callback_url, @request_id,
    @policy_version, @decision_id, @send_by, @now, @now, @expires_at, 0, @due_bucket,
    @cost, @charge, @quote, @fee, @name_match, @destination, @usage, @fingerprint, @transition_id
FROM room
ON CONFLICT (merchant_id, mode, kind, reference) DO UPDATE SET
    attempt = GREATEST(movements.attempt + 1, @attempt), operation = excluded.operation, provider = excluded.provider,
    state = 'submitting', ended = '', sequence = movements.sequence + 1, amount = excluded.amount, request = excluded.request,
    connection_owner = excluded.connection_owner, connection_account = excluded.connection_account,
    connection_version = excluded.connection_version, provider_reference = '', fact_id = '',
    callback_url = excluded.callback_url, request_id = excluded.request_id,
    policy_version = excluded.policy_version, decision_id = excluded.decision_id,
    send_by = excluded.send_by, created_at = excluded.created_at, updated_at = excluded.updated_at, expires_at = excluded.expires_at,
    result = NULL, answer = NULL, refusal = NULL, errored_at = NULL, returns = NULL, paid_amount = 0, polled_at = NULL, misses = 0, due_at = NULL,
    cost = excluded.cost, charge = excluded.charge, quote = excluded.quote,
    fee = excluded.fee, name_match = excluded.name_match, destination = excluded.destination, usage = excluded.usage, reservation_id = excluded.reservation_id
WHERE movements.state = 'not_submitted' AND (@attempt = 0 OR movements.attempt < @attempt)
RETURNING movements.id, movements.attempt, movements.sequence, movements.amount, movements.merchant_id, movements.mode,
    movements.reference, movements.provider, movements.connection_owner, movements.due_bucket, movements.polled_at, movements.misses,
    @due_at AS due
