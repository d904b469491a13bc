-- name: History :many
SELECT sequence, event, at, detail FROM history
WHERE movement_id = @movement_id
ORDER BY sequence;

-- name: HasTransition :one
SELECT EXISTS (SELECT 1 FROM history WHERE movement_id = @movement_id AND transition_id = @transition_id)::BOOL AS found;

-- name: AddNote :exec
-- Counts what is said again. A provider that words everything anew fills no table.
INSERT INTO history_notes (movement_id, attempt, event, detail, at, last_at, times)
SELECT @movement_id::UUID, @attempt::INT4, @event::TEXT, @detail::TEXT, @now::TIMESTAMPTZ, @now::TIMESTAMPTZ, 1
WHERE (SELECT COUNT(*) FROM history_notes AS n WHERE n.movement_id = @movement_id::UUID) < @most::INT8
ON CONFLICT (movement_id, attempt, event, detail) DO UPDATE SET last_at = excluded.last_at, times = history_notes.times + 1;

-- name: NotesOf :many
SELECT attempt, event, detail, at, last_at, times FROM history_notes
WHERE movement_id = @movement_id
ORDER BY at, event, detail;

-- name: PostingsOf :many
SELECT attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments FROM ledger_transactions
WHERE merchant_id = @merchant_id AND mode = @mode AND subject = @subject
ORDER BY attempt, step;

-- name: CallbacksOfMovement :many
-- A callback has the time of the history entry that made it, which spares an index.
SELECT merchant_id, mode, event_id, movement_id, sequence, event, reference, url, body, state, attempts, tries, created_at,
    due_bucket, due_at, resent_at, written_at, trace
FROM callbacks
WHERE merchant_id = @merchant_id AND mode = @mode AND created_at = ANY(@times::TIMESTAMPTZ[]) AND movement_id = @movement_id
ORDER BY sequence;
