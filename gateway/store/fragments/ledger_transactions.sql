INSERT INTO ledger_transactions (
    merchant_id, mode, subject, attempt, step, kind, provider, at, available, held, margin, cost, deposit, adjustments
)
SELECT changed.merchant_id, changed.mode, changed.id, changed.attempt, @posted_step, @posted_kind, changed.provider, @now,
    @posted_available, @posted_held, @posted_margin, @posted_cost, @posted_deposit, @posted_adjustments
FROM changed
RETURNING subject
