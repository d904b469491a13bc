-- name: Clock :one
SELECT clock_timestamp()::TIMESTAMPTZ AS now;
