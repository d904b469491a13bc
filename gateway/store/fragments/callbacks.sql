INSERT INTO callbacks (
    merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, created_at, due_bucket, due_at, trace
)
SELECT changed.merchant_id, changed.mode, @callback_id, changed.id, changed.sequence, @callback_event, changed.reference, @callback_to,
    @callback_body, @callback_state, 0, @now, @callback_bucket, @callback_due_at, @callback_trace
FROM changed
RETURNING event_id
