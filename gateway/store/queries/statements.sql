-- name: StatementOf :one
SELECT merchant_id, mode, provider, cursor, through, polled_at, due_at FROM statements WHERE account_id = @account_id;

-- name: PollStatement :one
-- Takes the right to read an account's statement, for one caller in each span. A time
-- that a fast clock has written keeps nobody from it. It is due again where the caller
-- is cut off, in its bucket, where an older gateway has not put it.
UPDATE statements SET polled_at = @now, due_at = @due_at, due_bucket = @due_bucket
WHERE account_id = @account_id AND (polled_at IS NULL OR polled_at <= @before OR polled_at > @ahead)
RETURNING account_id;

-- name: RestStatement :one
-- Says when the statement is due, unless a sale of the meantime did.
UPDATE statements SET due_at = @due_at
WHERE account_id = @account_id AND due_at = @until
RETURNING account_id;

-- name: DueStatements :many
-- The oldest of each bucket by the index.
SELECT found.account_id, found.merchant_id, found.mode, found.provider, found.polled_at, found.due_at FROM (SELECT unnest(@buckets::INT4[]) AS bucket) AS b
CROSS JOIN LATERAL (
    SELECT d.account_id, d.merchant_id, d.mode, d.provider, d.polled_at, d.due_at FROM statements AS d
    WHERE d.due_bucket = b.bucket AND d.due_at >= @since AND d.due_at <= @now
    ORDER BY d.due_at
    LIMIT @most
) AS found
ORDER BY found.due_at;

-- name: OpenSales :many
-- The collections at a provider that are open, the oldest first, by the index of what
-- movements have ended in. A gateway of before that ends one leaves that empty.
SELECT m.id, m.amount, m.state, m.created_at, m.expires_at, m.connection_account FROM movements AS m
WHERE m.ended = '' AND m.state IN ('submitting', 'acknowledged', 'pending') AND m.merchant_id = @merchant_id AND m.mode = @mode
    AND m.kind = 'collection' AND (m.created_at, m.id) > (@behind::TIMESTAMPTZ, @behind_id::UUID) AND m.provider = @provider
ORDER BY m.created_at, m.id
LIMIT @most;

-- name: ImportLines :one
-- Imports the lines that were read from a cursor and moves the cursor on, once: all
-- of them or none. What is known of a payment is only added to. A payment that was
-- closed already opens again when it is reversed or differs, such as where a part of
-- it was taken back.
WITH advanced AS (
    UPDATE statements SET cursor = @next::TEXT, through = GREATEST(through, @through::TIMESTAMPTZ)
    WHERE statements.account_id = @account_id AND statements.cursor = @cursor::TEXT
    RETURNING statements.account_id
), imported AS (
    INSERT INTO statement_lines (
        account_id, payment, line_id, amount, currency, at, paid, reversed_at, differs, data, imported_at, state, operator, reason
    )
    SELECT advanced.account_id, r.payment, r.line_id, r.amount, r.currency, r.at, r.paid,
        CASE WHEN r.reversed THEN r.reversed_at END, r.differs, r.data, @now::TIMESTAMPTZ, 'new', '', ''
    FROM advanced, (
        SELECT UNNEST(@payments::TEXT[]) AS payment, UNNEST(@line_ids::TEXT[]) AS line_id, UNNEST(@amounts::INT8[]) AS amount,
            UNNEST(@currencies::TEXT[]) AS currency, UNNEST(@ats::TIMESTAMPTZ[]) AS at, UNNEST(@paids::BOOL[]) AS paid,
            UNNEST(@reverseds::BOOL[]) AS reversed, UNNEST(@reversed_ats::TIMESTAMPTZ[]) AS reversed_at,
            UNNEST(@differents::BOOL[]) AS differs, UNNEST(@datas::TEXT[]) AS data, UNNEST(@faileds::BOOL[]) AS failed
    ) AS r
    WHERE NOT r.failed OR EXISTS (SELECT 1 FROM statement_lines AS s WHERE s.account_id = @account_id AND s.payment = r.payment AND s.paid)
    ON CONFLICT (account_id, payment) DO UPDATE SET
        line_id = CASE WHEN excluded.paid AND NOT statement_lines.paid THEN excluded.line_id ELSE statement_lines.line_id END,
        at = CASE WHEN excluded.paid AND NOT statement_lines.paid THEN excluded.at ELSE statement_lines.at END,
        amount = CASE WHEN excluded.paid AND NOT statement_lines.paid THEN excluded.amount ELSE statement_lines.amount END,
        currency = CASE WHEN excluded.paid AND NOT statement_lines.paid THEN excluded.currency ELSE statement_lines.currency END,
        data = CASE WHEN excluded.paid AND NOT statement_lines.paid THEN excluded.data ELSE statement_lines.data END,
        paid = statement_lines.paid OR excluded.paid,
        reversed_at = COALESCE(statement_lines.reversed_at, excluded.reversed_at),
        differs = statement_lines.differs OR excluded.differs OR statement_lines.amount <> excluded.amount OR statement_lines.currency <> excluded.currency
            OR statement_lines.paid AND excluded.paid AND statement_lines.at <> excluded.at,
        state = CASE
            WHEN statement_lines.state = 'paid' THEN 'matched'
            WHEN statement_lines.state = 'reversed' AND (excluded.differs OR statement_lines.amount <> excluded.amount OR statement_lines.currency <> excluded.currency)
                THEN CASE WHEN statement_lines.movement_id IS NULL THEN 'new' ELSE 'matched' END
            WHEN statement_lines.state IN ('unmatched', 'ambiguous', 'again') AND excluded.reversed_at IS NOT NULL AND NOT statement_lines.differs
                AND NOT excluded.differs AND statement_lines.amount = excluded.amount AND statement_lines.currency = excluded.currency THEN 'reversed'
            ELSE statement_lines.state END
    WHERE excluded.paid AND NOT statement_lines.paid
        OR excluded.reversed_at IS NOT NULL AND statement_lines.reversed_at IS NULL
        OR NOT statement_lines.differs AND (excluded.differs OR statement_lines.amount <> excluded.amount OR statement_lines.currency <> excluded.currency
            OR statement_lines.paid AND excluded.paid AND statement_lines.at <> excluded.at)
    RETURNING payment
)
SELECT advanced.account_id FROM advanced;
