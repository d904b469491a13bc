package database

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestURLOfARunningServer(t *testing.T) {
	t.Parallel()
	needsPostgres(t)
	server := open(t, Options{Ephemeral: true, Engine: PostgreSQL})
	missing := withDatabase(server.URL(), "made_when_missing")

	byFlag := open(t, Options{URL: missing, Getenv: environment{URLVariable: "postgres://127.0.0.1:1/"}.get})
	if got := query(t, byFlag.URL(), "SELECT current_database()"); got != "made_when_missing" {
		t.Errorf("database = %q", got)
	}
	if byFlag.Engine() != PostgreSQL {
		t.Errorf("engine = %q", byFlag.Engine())
	}
	byEnv := open(t, Options{Getenv: environment{URLVariable: withDatabase(server.URL(), "")}.get})
	if got := query(t, byEnv.URL(), "SELECT current_database()"); got != databaseName || byEnv.Source() != URLVariable {
		t.Errorf("database = %q from %q", got, byEnv.Source())
	}
	if _, err := Open(t.Context(), Options{URL: missing, Engine: CockroachDB}); err == nil {
		t.Error("PostgreSQL was accepted where CockroachDB was asked for")
	}

	select {
	case <-byFlag.Done():
		t.Error("done before Close")
	default:
	}
	if err := byFlag.Close(context.Background()); err != nil {
		t.Error(err)
	}
	await(t, "the end of the connection", byFlag.Done())
	if got := query(t, server.URL(), "SELECT 'alive'"); got != "alive" {
		t.Error("closing stopped somebody else's server")
	}
}

func TestURLErrorsKeepThePassword(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		"mysql://u:hunter2@h/db", "postgres://u:hunter2@h:port/db", "host=h password=hunter2",
		"postgres://u:hunter2@127.0.0.1:1/db",
	} {
		_, err := Open(t.Context(), Options{URL: raw, Dir: t.TempDir()})
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("Open = %v; want an error without the password", err)
		}
	}
}

func TestOldServersAreRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		parameter, value string
		want             bool
	}{
		{"server_version", "14.11 (Debian 14.11-1)", false},
		{"server_version", "15.18 (Debian 15.18-0)", true},
		{"server_version", "17beta2", true},
		{"crdb_version", "CockroachDB CCL v24.2.9 (x86_64)", false},
		{"crdb_version", "CockroachDB CCL v24.3.0 (x86_64)", true},
		{"crdb_version", "CockroachDB CCL v25.1.0-alpha.1", true},
	} {
		w := newWire(t, map[string]string{test.parameter: test.value})
		s, err := Open(t.Context(), Options{URL: fmt.Sprintf("postgres://u@%s/db?sslmode=disable", w.addr)})
		if (err == nil) != test.want {
			t.Errorf("%s %q: %v", test.parameter, test.value, err)
		}
		if s != nil && (s.Engine() == CockroachDB) != (test.parameter == "crdb_version") {
			t.Errorf("%q was taken for %s", test.value, s.Engine())
		}
	}
}

func TestDatabaseNames(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		"postgres://u:p@h/shop?sslmode=disable": "postgres://u:p@h/other?sslmode=disable",
		"postgresql://u@h":                      "postgresql://u@h/other",
		"postgres:///?dbname=shop&host=/tmp":    "postgres:///other?host=%2Ftmp",
	} {
		if got := withDatabase(raw, "other"); got != want {
			t.Errorf("withDatabase(%q) = %q, want %q", raw, got, want)
		}
	}
	if name, err := databaseOf("postgres:///?dbname=shop"); name != "shop" || err != nil {
		t.Errorf("databaseOf = %q, %v", name, err)
	}
}

func TestServersSeeLittleOfTheEnvironment(t *testing.T) {
	t.Parallel()
	o := Options{Getenv: environment{"PATH": "/bin", "HOME": "/h", "PGDATA": "/x", "GERBANG_KEY": "s"}.get}
	got := strings.Join(serverEnv(o.withDefaults()), " ")
	if got != "PATH=/bin LC_ALL=C TZ=UTC HOME=/h" {
		t.Errorf("environment = %s", got)
	}
	if o := (Options{}).withDefaults(); o.Getenv("PATH") != os.Getenv("PATH") {
		t.Error("without Getenv the process's environment is used")
	}
}
