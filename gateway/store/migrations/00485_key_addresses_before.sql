-- +goose NO TRANSACTION
-- +goose Up
INSERT INTO key_addresses (merchant_id, key_id, address, used_at) SELECT merchant_id, key_id, address, used_at FROM key_uses ON CONFLICT DO NOTHING;
