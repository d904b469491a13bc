-- name: InsertRequests :exec
INSERT INTO request_log (merchant_id, mode, span, replica_id, part, shard, terms, dropped, calls)
SELECT unnest(@merchants::TEXT[]), unnest(@modes::TEXT[]), unnest(@spans::TIMESTAMPTZ[]), @replica_id, unnest(@parts::INT8[]),
    unnest(@shards::INT4[]), unnest(@terms::TEXT[]), unnest(@dropped::INT4[]), unnest(@calls::BYTEA[])
ON CONFLICT (merchant_id, mode, span, replica_id, part) DO NOTHING;

-- name: RequestsOf :many
-- The last parts of a merchant's log that hold what is looked for, below one.
SELECT span, replica_id, part, calls FROM request_log
WHERE merchant_id = @merchant_id AND mode = @mode AND span >= @since AND span <= @below_span
    AND (span, replica_id, part) < (@below_span, @below_replica::UUID, @below_part::INT8)
    AND strpos(terms, @operation::TEXT) > 0 AND strpos(terms, @code::TEXT) > 0 AND strpos(terms, @state::TEXT) > 0
ORDER BY span DESC, replica_id DESC, part DESC
LIMIT @most;

-- name: RequestOwners :many
-- Who has calls in a time, by keys alone.
SELECT DISTINCT merchant_id, mode FROM request_log WHERE shard = ANY(@shards::INT4[]) AND span >= @since AND span <= @until;

-- name: RequestsDropped :one
-- The index has parts with a count alone, which are few.
SELECT COALESCE(sum(dropped), 0)::INT8 FROM request_log WHERE merchant_id = @merchant_id AND mode = @mode AND span >= @since AND dropped > 0;

-- name: ForgetRequests :execrows
DELETE FROM request_log WHERE (merchant_id, mode, span, replica_id, part) IN (
    SELECT old.merchant_id, old.mode, old.span, old.replica_id, old.part FROM request_log AS old
    WHERE old.shard = ANY(@shards::INT4[]) AND old.span < @before LIMIT @most
);
