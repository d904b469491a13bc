-- The database removes what the gateway removes by itself, some time later: rows go also where no
-- gateway runs, and where one removal of the gateway is too large for the cluster.
--
--   cockroach sql --url "$URL" --file ttl.sql
--
-- It may be applied again. undo/ttl.sql takes it back. Each job reads its whole table, so the logs have
-- one a day, at night in Jakarta. Times are the database's clock's. Left out are, among others:
-- money, histories, audit, sent mails and callbacks, which nobody removes; usage and rates, of which a
-- row that is gone is a limit that is full again; replicas, from which a recovery reads the last trace
-- of a gateway; key_addresses, the last use of a key that nobody uses.

-- Kept for seven days by the gateway.
ALTER TABLE decision_log SET (ttl_expiration_expression = '((minute AT TIME ZONE ''UTC'') + INTERVAL ''8 days'') AT TIME ZONE ''UTC''', ttl_job_cron = '10 19 * * *');
ALTER TABLE request_log SET (ttl_expiration_expression = '((span AT TIME ZONE ''UTC'') + INTERVAL ''8 days'') AT TIME ZONE ''UTC''', ttl_job_cron = '40 19 * * *');
ALTER TABLE merchant_records SET (ttl_expiration_expression = '((replaced_at AT TIME ZONE ''UTC'') + INTERVAL ''8 days'') AT TIME ZONE ''UTC''', ttl_job_cron = '10 20 * * *');

-- Given for a day at most. A row has at least one of the times.
ALTER TABLE query_cache SET (ttl_expiration_expression = '((GREATEST(fetched_at, failed_at, refreshing_until) AT TIME ZONE ''UTC'') + INTERVAL ''2 days'') AT TIME ZONE ''UTC''', ttl_job_cron = '20 20 * * *');

-- Over, and a day more for whatever still writes them.
ALTER TABLE sessions SET (ttl_expiration_expression = '((expires_at AT TIME ZONE ''UTC'') + INTERVAL ''1 day'') AT TIME ZONE ''UTC''', ttl_job_cron = '30 * * * *');
ALTER TABLE invitations SET (ttl_expiration_expression = '((expires_at AT TIME ZONE ''UTC'') + INTERVAL ''1 day'') AT TIME ZONE ''UTC''', ttl_job_cron = '40 20 * * *');
ALTER TABLE resets SET (ttl_expiration_expression = '((expires_at AT TIME ZONE ''UTC'') + INTERVAL ''1 day'') AT TIME ZONE ''UTC''', ttl_job_cron = '50 20 * * *');
