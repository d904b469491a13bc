-- +goose NO TRANSACTION
-- +goose Up
-- When the link in a mail ends, NULL without one. Such a mail goes before others and is
-- not sent any more after it.
ALTER TABLE mails ADD COLUMN IF NOT EXISTS not_after TIMESTAMPTZ;
