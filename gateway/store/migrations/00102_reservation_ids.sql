-- +goose NO TRANSACTION

-- +goose Up
-- The id of the reservation that made the attempt. A reference, its request and its
-- times may be another replica's, too.
ALTER TABLE movements ADD COLUMN IF NOT EXISTS reservation_id UUID;
