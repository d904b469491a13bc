-- name: InsertDecisions :exec
INSERT INTO decision_log (shard, minute, replica_id, part, counts, inputs)
VALUES (@shard, @minute, @replica_id, @part, @counts, sqlc.narg(inputs))
ON CONFLICT (shard, minute, replica_id, part) DO NOTHING;

-- name: DecisionsBetween :many
SELECT minute, replica_id, part, counts, inputs FROM decision_log
WHERE shard = ANY(@shards::INT4[]) AND minute >= @since AND minute < @before
ORDER BY minute, replica_id, part;

-- name: DecisionCountsBetween :many
SELECT minute, counts FROM decision_log
WHERE shard = ANY(@shards::INT4[]) AND minute >= @since AND minute < @before
ORDER BY minute;

-- name: ForgetDecisions :exec
DELETE FROM decision_log WHERE shard = ANY(@shards::INT4[]) AND minute < @before;

-- name: KeepMerchantRecord :exec
INSERT INTO merchant_records (merchant_id, version, record, replaced_at)
VALUES (@merchant_id, @version, @record, @replaced_at)
ON CONFLICT (merchant_id, version) DO NOTHING;

-- name: MerchantRecord :one
SELECT record FROM merchant_records WHERE merchant_id = @merchant_id AND version = @version;

-- name: ForgetMerchantRecords :exec
DELETE FROM merchant_records WHERE replaced_at < @before;

-- name: MovementsDecided :many
-- The movements reserved in a span of time, in the order of their reservation, of one
-- merchant and kind or of all.
SELECT sqlc.embed(m) FROM movements AS m
WHERE due_bucket = ANY(@buckets::INT4[]) AND created_at >= @since AND created_at < @before
    AND (created_at, id) > (@after_at::TIMESTAMPTZ, @after::UUID)
    AND (@merchant_id::TEXT = '' OR merchant_id = @merchant_id::TEXT) AND (@kind::TEXT = '' OR kind = @kind::TEXT)
ORDER BY created_at, id
LIMIT @most;
