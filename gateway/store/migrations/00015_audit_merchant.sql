-- +goose NO TRANSACTION

-- +goose Up
CREATE INDEX IF NOT EXISTS audit_merchant ON audit (merchant_id, at);

-- +goose Down
DROP INDEX IF EXISTS audit_merchant;
