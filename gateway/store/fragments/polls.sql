-- What is to be asked about a movement from now on. The version begins above those of every
-- earlier row of the movement, which it replaces.
INSERT INTO polls (movement_id, attempt, version, account, bucket, due, asked_at, misses)
SELECT changed.id, changed.attempt, changed.sequence::INT8 * 1000000,
    changed.provider || '/' || changed.mode || CASE WHEN changed.connection_owner = 'platform' THEN '' ELSE '/' || changed.merchant_id END,
    changed.due_bucket, changed.due, changed.polled_at, changed.misses
FROM changed
ON CONFLICT (movement_id) DO UPDATE SET
    attempt = excluded.attempt, version = excluded.version, account = excluded.account, due = excluded.due,
    asked_at = excluded.asked_at, misses = excluded.misses
WHERE polls.version < excluded.version
RETURNING movement_id
