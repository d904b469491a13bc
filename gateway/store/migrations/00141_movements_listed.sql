-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's movements, of any state or of one, the newest first.
CREATE INDEX IF NOT EXISTS movements_listed ON movements (merchant_id, mode, kind, state, created_at, id);
