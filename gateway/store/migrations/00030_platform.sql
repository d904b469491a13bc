-- +goose NO TRANSACTION

-- +goose Up
-- The platform's own connections hang on this row as merchants' do on theirs.
INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard)
VALUES ('platform', 'Platform', '', 'active', '{}', 1, '2026-01-01 00:00:00+00', '2026-01-01 00:00:00+00', 3)
ON CONFLICT (merchant_id) DO NOTHING;

-- +goose Down
DELETE FROM merchants WHERE merchant_id = 'platform';
