-- What was freed has no row to take: nothing is asked about it.
SELECT @id AS movement_id, NULL::TIMESTAMPTZ AS asked_at
