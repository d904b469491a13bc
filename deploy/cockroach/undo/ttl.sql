-- Takes ttl.sql back: only the gateway removes rows.
--
--   cockroach sql --url "$URL" --file undo/ttl.sql

ALTER TABLE decision_log RESET (ttl);
ALTER TABLE request_log RESET (ttl);
ALTER TABLE merchant_records RESET (ttl);
ALTER TABLE query_cache RESET (ttl);
ALTER TABLE sessions RESET (ttl);
ALTER TABLE invitations RESET (ttl);
ALTER TABLE resets RESET (ttl);
