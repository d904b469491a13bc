-- name: DueMails :many
-- Of each bucket the oldest with a link, for which somebody waits, and the oldest of the others.
SELECT sqlc.embed(m) FROM mails AS m
JOIN (
    SELECT found.mail_id, found.place, found.due_at FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
    CROSS JOIN LATERAL (
        (
            SELECT l.mail_id, 1 AS place, l.due_at FROM mails AS l
            WHERE l.due_bucket = b.bucket AND l.due_at IS NOT NULL AND l.not_after IS NOT NULL AND l.due_at >= @since AND l.due_at <= @now
            ORDER BY l.due_at
            LIMIT @most
        )
        UNION ALL
        (
            SELECT d.mail_id, 2 AS place, d.due_at FROM mails AS d
            WHERE d.due_bucket = b.bucket AND d.due_at IS NOT NULL AND d.not_after IS NULL AND d.due_at >= @since AND d.due_at <= @now
            ORDER BY d.due_at
            LIMIT @most
        )
    ) AS found
    ORDER BY found.place, found.due_at
    LIMIT @most
) AS due ON due.mail_id = m.mail_id
ORDER BY due.place, due.due_at;

-- name: RecordMail :execrows
-- Writes a try of a mail. The count of tries is the guard, as of a callback. What is
-- sent or given up keeps neither its address nor its text.
UPDATE mails SET recipient = CASE WHEN @state::TEXT = 'waiting' THEN recipient ELSE '' END,
    subject = CASE WHEN @state::TEXT = 'waiting' THEN subject ELSE '' END, body = CASE WHEN @state::TEXT = 'waiting' THEN body ELSE '' END,
    state = @state::TEXT, attempts = attempts + 1, fault = @fault, tried_at = @tried_at, due_at = sqlc.narg(due_at)
WHERE mail_id = @mail_id AND attempts = @attempts AND state = 'waiting';

-- name: CountMails :one
SELECT count(*) FROM mails WHERE mail_id = @mail_id;

-- name: CancelMails :exec
UPDATE mails SET recipient = '', subject = '', body = '', state = 'dead', fault = @fault, due_at = NULL
WHERE mail_id = ANY(@mail_ids::UUID[]) AND state = 'waiting';
