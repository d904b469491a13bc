package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// fixture is a tool whose servers are only names.
type fixture struct {
	tool
	env      map[string]string
	out, log strings.Builder
	started  []database.Engine
	durable  bool
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{env: map[string]string{"PATH": t.TempDir()}}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = null.Close() })
	f.tool = tool{
		getenv: func(name string) string { return f.env[name] }, environ: os.Environ(),
		in: null, out: &f.out, log: &f.log,
		start: func(_ context.Context, _ tool, wanted dbtest.Wanted) (*dbtest.Server, error) {
			engine := wanted.Engine
			f.durable = wanted.Durable
			if engine == "" {
				engine = database.PostgreSQL
			}
			f.started = append(f.started, engine)
			return dbtest.NewServer("postgres://server/x", engine, "a test", func(context.Context) error {
				f.out.WriteString("stopped\n")
				return nil
			}), nil
		},
	}
	return f
}

func (f *fixture) shell(t *testing.T, script string, flags ...string) int {
	t.Helper()
	return f.run(t.Context(), append(flags, "--", "/bin/sh", "-c", script))
}

func TestCommandSeesTheServerAndDecidesTheExitCode(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	exit := f.shell(t, `echo "$GERBANG_TEST_DATABASE_URL $GERBANG_TEST_ENGINE"; exit 7`)
	if exit != 7 {
		t.Errorf("exit = %d", exit)
	}
	if want := "postgres://server/x postgresql\nstopped\n"; f.out.String() != want {
		t.Errorf("output = %q, want %q", f.out.String(), want)
	}
	if exit := newFixture(t).shell(t, "kill -TERM $$"); exit != exitSignal+15 {
		t.Errorf("exit of a command that was killed = %d", exit)
	}
}

func TestEnginesThatAreUsed(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "cockroach")
	if err := os.WriteFile(binary, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		flags  []string
		binary string
		script string
		want   string
	}{
		"no cockroach":        {nil, "", "exit 0", "postgresql"},
		"cockroach":           {nil, binary, "exit 0", "postgresql cockroachdb"},
		"failure on one":      {nil, binary, "exit 1", "postgresql"},
		"only postgresql":     {[]string{"-engine", "postgresql", "-durable"}, binary, "exit 0", "postgresql"},
		"insist on cockroach": {[]string{"-engine", "cockroachdb"}, binary, "exit 0", "cockroachdb"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.env[database.BinaryVariable] = test.binary
			f.shell(t, test.script, test.flags...)
			var used []string
			for _, engine := range f.started {
				used = append(used, string(engine))
			}
			if want := slices.Contains(test.flags, "-durable"); f.durable != want {
				t.Errorf("durable = %v", f.durable)
			}
			if got := strings.Join(used, " "); got != test.want {
				t.Errorf("ran on %q, want %q", got, test.want)
			}
		})
	}
}

func TestWithoutAServerTheCommandDoesNotRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start = func(context.Context, tool, dbtest.Wanted) (*dbtest.Server, error) {
		return nil, errors.New("no cockroach on the PATH")
	}
	if exit := f.shell(t, "echo ran", "-engine", "cockroachdb"); exit != exitNoServer {
		t.Errorf("exit = %d", exit)
	}
	if f.out.Len() != 0 || !strings.Contains(f.log.String(), "no cockroach on the PATH") {
		t.Errorf("output %q, log %q", f.out.String(), f.log.String())
	}
}

func TestServerOfSomebodyElseIsUsedAsItIs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.env[dbtest.URLVariable] = "postgres://other/y"
	f.environ = append(f.environ, dbtest.URLVariable+"=postgres://other/y")
	if exit := f.shell(t, `echo "$GERBANG_TEST_DATABASE_URL"`); exit != 0 || len(f.started) != 0 {
		t.Errorf("exit = %d, started %v", exit, f.started)
	}
	if f.out.String() != "postgres://other/y\n" {
		t.Errorf("output = %q", f.out.String())
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--"}, {"-engine", "sqlite", "--", "true"}, {"-nonsense"}} {
		f := newFixture(t)
		if exit := f.run(t.Context(), args); exit != exitUsage || len(f.started) != 0 {
			t.Errorf("%q: exit = %d, started %v", args, exit, f.started)
		}
		if !strings.Contains(f.log.String(), "-engine") {
			t.Errorf("%q: log = %q", args, f.log.String())
		}
	}
	if exit := newFixture(t).run(t.Context(), []string{"/nonexistent/command"}); exit != exitUsage {
		t.Errorf("a missing command: exit = %d", exit)
	}
}

func TestSignalsGoToTheCommand(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	signals := make(chan os.Signal, 1)
	signals <- os.Interrupt
	exit := make(chan int, 1)
	go func() {
		exit <- f.command([]string{"/bin/sh", "-c", "while :; do sleep 0.05; done"}, os.Environ(), signals)
	}()
	select {
	case got := <-exit:
		if got != exitSignal+2 {
			t.Errorf("exit = %d", got)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the command did not get the signal")
	}
}
