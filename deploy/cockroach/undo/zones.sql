-- Takes zones.sql back: old versions are kept as long as the database's are, and ranges merge.
--
--   cockroach sql --url "$URL" --file undo/zones.sql

ALTER TABLE polls CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER INDEX callbacks@callbacks_due CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER INDEX mails@mails_due CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE leases CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE rates CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE usage CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE ledger_balances CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE query_cache CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
ALTER TABLE replicas CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;

ALTER INDEX polls@polls_due UNSPLIT ALL;
ALTER INDEX callbacks@callbacks_due UNSPLIT ALL;
ALTER INDEX movements@movements_created UNSPLIT ALL;
