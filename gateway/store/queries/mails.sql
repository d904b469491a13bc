-- name: DueMails :many
SELECT mail_id, merchant_id, mode, movement_id, recipient, subject, body, state, attempts, fault, created_at, tried_at, due_bucket, due_at
FROM mails
WHERE due_bucket = ANY(@buckets::INT4[]) AND due_at IS NOT NULL AND due_at >= @since AND due_at <= @now
ORDER BY due_at
LIMIT @most;

-- name: RecordMail :execrows
-- Writes a try of a mail. The count of tries is the guard, as of a callback. What is
-- sent or given up keeps neither its address nor its text.
UPDATE mails SET recipient = CASE WHEN @state::TEXT = 'waiting' THEN recipient ELSE '' END,
    subject = CASE WHEN @state::TEXT = 'waiting' THEN subject ELSE '' END, body = CASE WHEN @state::TEXT = 'waiting' THEN body ELSE '' END,
    state = @state::TEXT, attempts = attempts + 1, fault = @fault, tried_at = @tried_at, due_at = sqlc.narg(due_at)
WHERE mail_id = @mail_id AND attempts = @attempts AND state = 'waiting';
