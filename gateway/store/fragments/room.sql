-- Nothing but the reference is reserved: there is always room.
SELECT @amount AS amount
