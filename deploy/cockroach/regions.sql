-- Three regions: money is read and written in region-1, and any one region may be lost. For nodes
-- whose --locality names region-1, region-2 and region-3, and a database called gerbang:
--
--   cockroach sql --url "$URL" --file regions.sql
--
-- It may be applied again. undo/regions.sql takes it back. deploy/SCALE.md says what it costs.

ALTER DATABASE gerbang SET PRIMARY REGION "region-1";
ALTER DATABASE gerbang ADD REGION IF NOT EXISTS "region-2";
ALTER DATABASE gerbang ADD REGION IF NOT EXISTS "region-3";

-- Where leaseholders go when region-1 is lost.
ALTER DATABASE gerbang SET SECONDARY REGION "region-2";
ALTER DATABASE gerbang SURVIVE REGION FAILURE;

-- What a gateway reads of an account that it does not remember: seven queries, and strangers take
-- turns at them. Read in each region from a node there; written when people change an account, about
-- a second later. Every other table stays REGIONAL BY TABLE IN PRIMARY REGION: it is written with
-- money or many times a minute, or read several times a second for news of less than a second.
ALTER TABLE merchants SET LOCALITY GLOBAL;
ALTER TABLE api_keys SET LOCALITY GLOBAL;
ALTER TABLE connections SET LOCALITY GLOBAL;
ALTER TABLE callback_secrets SET LOCALITY GLOBAL;
ALTER TABLE merchant_limits SET LOCALITY GLOBAL;
ALTER TABLE pauses SET LOCALITY GLOBAL;
