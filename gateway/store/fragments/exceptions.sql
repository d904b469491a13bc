INSERT INTO exceptions (merchant_id, mode, subject, reason, fact_id, provider, detail, at)
SELECT changed.merchant_id, changed.mode, changed.subject, changed.reason, changed.fact_id, changed.provider, changed.detail, changed.at
FROM changed WHERE changed.reason <> ''
ON CONFLICT (merchant_id, mode, subject, reason, fact_id) DO NOTHING
RETURNING subject
