package main

import "testing"

func TestRefusedOptionalMigrations(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sql    string
		line   int
		reason string
	}{
		"empty":          {"-- To come.\n", 1, "nothing stands"},
		"no SQL":         {"ALTER TABLE t SET LOCALITY EVERYWHERE;", 1, "parser"},
		"no zone's":      {"\nALTER TABLE t CONFIGURE ZONE USING gc.ttlseconds 600;", 2, "parser"},
		"another act":    {"DROP TABLE IF EXISTS t;", 1, "only alters"},
		"rows":           {"DELETE FROM t WHERE a = 1;", 1, "only alters"},
		"region":         {"ALTER DATABASE d ADD REGION \"r\";", 1, "ADD REGION needs"},
		"its undo":       {"ALTER DATABASE d DROP REGION \"r\";", 1, "DROP REGION needs"},
		"the second one": {"ALTER DATABASE d DROP SECONDARY REGION;", 1, "DROP REGION needs"},
		"a sequence":     {"ALTER SEQUENCE s INCREMENT BY 2;", 1, "made in Go"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, judgeFile("deploy/cockroach/x.sql", c.sql, new(counts)), c.line, c.reason)
		})
	}
}

func TestGoodOptionalMigrationsPass(t *testing.T) {
	t.Parallel()
	var counted counts
	got := judgeFile("deploy/cockroach/undo/x.sql", `-- Whatever PostgreSQL's parser says.
		ALTER DATABASE d SET PRIMARY REGION "r";
		ALTER DATABASE d ADD REGION IF NOT EXISTS "s";
		ALTER DATABASE d DROP SECONDARY REGION IF EXISTS;
		ALTER DATABASE d DROP REGION IF EXISTS "s";
		ALTER DATABASE d SURVIVE REGION FAILURE;
		ALTER TABLE t SET LOCALITY GLOBAL;
		ALTER INDEX t@i CONFIGURE ZONE USING gc.ttlseconds = COPY FROM PARENT;
		ALTER TABLE t SET (ttl_expiration_expression = '(a AT TIME ZONE ''UTC'') AT TIME ZONE ''UTC''', ttl_job_cron = '@daily');
		ALTER TABLE t RESET (ttl);`, &counted)
	if len(got) > 0 || counted != (counts{optional: 1}) {
		t.Errorf("findings %v, counted %+v", got, counted)
	}
}
