INSERT INTO reserved_amounts (account_id, amount, movement_id, taken_at, free_at)
SELECT @account_id, changed.amount, changed.id, @now, @free_at FROM changed
ON CONFLICT (account_id, amount) DO UPDATE SET
    movement_id = excluded.movement_id, free_at = excluded.free_at,
    taken_at = CASE WHEN reserved_amounts.free_at <= excluded.taken_at THEN excluded.taken_at ELSE excluded.free_at END
RETURNING account_id
