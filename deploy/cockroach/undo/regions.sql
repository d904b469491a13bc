-- Takes regions.sql back: one database without regions, whose ranges may lie on any node. Once, for
-- without regions there are no localities.
--
--   cockroach sql --url "$URL" --file undo/regions.sql

ALTER TABLE merchants SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
ALTER TABLE api_keys SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
ALTER TABLE connections SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
ALTER TABLE callback_secrets SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
ALTER TABLE merchant_limits SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;
ALTER TABLE pauses SET LOCALITY REGIONAL BY TABLE IN PRIMARY REGION;

-- A region can't be dropped while its loss must be survived. The primary one is the last.
ALTER DATABASE gerbang SURVIVE ZONE FAILURE;
ALTER DATABASE gerbang DROP SECONDARY REGION IF EXISTS;
ALTER DATABASE gerbang DROP REGION IF EXISTS "region-3";
ALTER DATABASE gerbang DROP REGION IF EXISTS "region-2";
ALTER DATABASE gerbang DROP REGION IF EXISTS "region-1";
