-- +goose NO TRANSACTION

-- +goose Up
UPDATE movements SET ended = state WHERE ended = '' AND state IN ('succeeded', 'failed', 'expired', 'not_submitted');
