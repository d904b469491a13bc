INSERT INTO audit (audit_id, merchant_id, at, operator, action, detail, origin, times, mac)
SELECT @audit_id, changed.merchant_id, @now, @operator, @action, @detail, @origin, @times, @audit_mac FROM changed
RETURNING audit_id
