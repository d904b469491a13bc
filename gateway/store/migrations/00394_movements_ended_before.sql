-- +goose NO TRANSACTION

-- +goose Up
-- For the movements of before. No release has written any without the column, so one
-- statement fills it for all.
UPDATE movements SET ended = state WHERE ended = '' AND state IN ('succeeded', 'failed', 'expired', 'not_submitted');
