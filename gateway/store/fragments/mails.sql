INSERT INTO mails (mail_id, merchant_id, mode, movement_id, recipient, subject, body, state, created_at, due_bucket, due_at, not_after)
SELECT @mail_id, changed.merchant_id, changed.mode, changed.id, @mail_to, @mail_subject, @mail_body, 'waiting', @now, @mail_bucket, @now, @mail_until
FROM changed
RETURNING mail_id
