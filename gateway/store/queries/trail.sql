-- name: NoteEvent :exec
-- Counts what is said again. A provider that words everything anew fills no table.
INSERT INTO movement_notes (movement_id, attempt, event, detail, at, last_at, times)
SELECT @movement_id::UUID, @attempt::INT4, @event::TEXT, @detail::TEXT, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 1
WHERE (SELECT COUNT(*) FROM movement_notes AS n WHERE n.movement_id = @movement_id::UUID) < @most::INT8
ON CONFLICT (movement_id, attempt, event, detail) DO UPDATE SET last_at = excluded.last_at, times = movement_notes.times + 1;

-- name: NotesOf :many
SELECT attempt, event, detail, at, last_at, times FROM movement_notes
WHERE movement_id = @movement_id
ORDER BY at, event, detail;

-- name: PostingsOf :many
SELECT attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments FROM ledger_transactions
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject
ORDER BY attempt, step;

-- name: CallbacksOfMovement :many
-- A callback is as old as the event that made it, which spares an index.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND created_at = ANY(@times::TIMESTAMPTZ[]) AND movement_id = @movement_id
ORDER BY sequence;

-- name: MovementsByReference :many
-- Goes by the key, of each merchant.
SELECT m.merchant_id, m.mode, m.kind, m.reference, m.id, m.attempt, m.operation, m.provider, m.state, m.sequence, m.amount, m.request, m.result, m.answer,
    m.refusal, m.connection_version, m.provider_reference, m.fact_id, m.callback_url, m.request_id, m.policy_version, m.decision_id, m.send_by, m.created_at, m.updated_at,
    m.expires_at, m.asked_at, m.misses, m.due_bucket, m.due_at, m.paid_late_at, m.reversed_at, m.cost, m.charge, m.quote, m.connection_owner, m.connection_account,
    m.fee, m.name_match, m.spends, m.delivered, m.stem, m.paid_at
FROM merchants AS t
JOIN movements AS m ON m.merchant_id = t.merchant_id
WHERE m.mode = ANY(@modes::TEXT[]) AND m.kind = ANY(@kinds::TEXT[]) AND m.reference = @reference
ORDER BY m.created_at DESC
LIMIT @most;

-- name: MovementsByOthersID :many
SELECT merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence, amount, request, result, answer,
    refusal, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id, send_by, created_at, updated_at,
    expires_at, asked_at, misses, due_bucket, due_at, paid_late_at, reversed_at, cost, charge, quote, connection_owner, connection_account,
    fee, name_match, spends, delivered, stem, paid_at
FROM movements
WHERE due_bucket = ANY(@buckets::INT4[]) AND created_at >= @since AND created_at < @before
    AND (request_id = @id::TEXT OR decision_id = @id::TEXT OR provider_reference = @id::TEXT)
ORDER BY created_at DESC
LIMIT @most;
