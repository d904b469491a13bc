-- What belongs to no movement.
SELECT @merchant_id AS merchant_id, @mode AS mode, @id AS id, 1 AS sequence, '' AS reference
