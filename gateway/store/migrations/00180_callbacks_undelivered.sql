-- +goose NO TRANSACTION

-- +goose Up
-- Lists a merchant's callbacks that are not delivered, the newest first. Without the
-- delivered ones a delivery does not write it.
CREATE INDEX IF NOT EXISTS callbacks_undelivered ON callbacks (merchant_id, mode, state, created_at, event_id)
    WHERE state IN ('waiting', 'gone', 'dead');
