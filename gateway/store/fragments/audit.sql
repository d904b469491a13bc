INSERT INTO audit (audit_id, merchant_id, at, operator, action, detail, origin)
SELECT @audit_id, changed.merchant_id, @now, @operator, @action, @detail, @origin FROM changed
RETURNING audit_id
