INSERT INTO history (movement_id, sequence, event, at, detail, transition_id)
SELECT changed.id, changed.sequence, @event, @now, @detail, @transition_id FROM changed
RETURNING movement_id
