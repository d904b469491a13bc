-- Old versions of rows go sooner where rows are rewritten or removed all the time, and the queues'
-- indexes have a range for each bucket from the first day:
--
--   cockroach sql --url "$URL" --file zones.sql
--
-- It may be applied again. undo/zones.sql takes it back. What is read or backed up as of a time before
-- these ten minutes is gone: incremental backups have to be a schedule's, which protects what it needs.

-- A scan of what is due passes the versions of all that was due before it.
ALTER TABLE polls CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER INDEX callbacks@callbacks_due CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER INDEX mails@mails_due CONFIGURE ZONE USING gc.ttlseconds = 600;

-- Few rows, each written again and again. What matters of a balance or a count is in rows that stay:
-- ledger_transactions and movements.
ALTER TABLE leases CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER TABLE rates CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER TABLE usage CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER TABLE ledger_balances CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER TABLE query_cache CONFIGURE ZONE USING gc.ttlseconds = 600;
ALTER TABLE replicas CONFIGURE ZONE USING gc.ttlseconds = 600;

-- Times rise behind each of the sixteen buckets, so that many ends are written to. A small cluster
-- begins with one range a table, and load splits it later.
ALTER INDEX polls@polls_due SPLIT AT VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
ALTER INDEX callbacks@callbacks_due SPLIT AT VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
ALTER INDEX movements@movements_created SPLIT AT VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15);
