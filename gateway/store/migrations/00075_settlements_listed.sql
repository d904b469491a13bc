-- +goose NO TRANSACTION

-- +goose Up
-- What waits for an operator.
CREATE INDEX IF NOT EXISTS settlements_listed ON settlements (account_id, at) WHERE state IN ('unmatched', 'ambiguous', 'again');

-- +goose Down
DROP INDEX IF EXISTS settlements_listed;
