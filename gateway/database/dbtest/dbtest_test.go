package dbtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// childVariable makes this test binary use one database under the key it holds, and end.
const childVariable = "DBTEST_TEST_KEY"

func TestMain(m *testing.M) { dbtest.Main(m) }

func execute(ctx context.Context, url, sql string) (err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	_, err = conn.Exec(ctx, sql)
	return err
}

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func schema(ctx context.Context, url string) error {
	if err := execute(ctx, url, "CREATE TABLE item (n INT8 PRIMARY KEY)"); err != nil {
		return err
	}
	return execute(ctx, url, "INSERT INTO item VALUES (1)")
}

func TestEachTestHasItsOwnDatabase(t *testing.T) { //nolint:tparallel // what they prepared is counted after them
	t.Parallel()
	var prepared atomic.Int32
	prepare := func(ctx context.Context, url string) error {
		prepared.Add(1)
		return schema(ctx, url)
	}
	const databases = 6
	key := "own " + t.Name()
	t.Run("together", func(t *testing.T) {
		for n := range databases {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				url := dbtest.New(t, key, prepare)
				if err := execute(t.Context(), url, fmt.Sprintf("INSERT INTO item VALUES (%d)", n+2)); err != nil {
					t.Fatal(err)
				}
				if got := count(t, url, "SELECT count(*) FROM item"); got != 2 {
					t.Errorf("%d rows: another test's are among them", got)
				}
			})
		}
	})
	want := int32(1)
	if dbtest.Engine(t) == database.CockroachDB {
		want = databases
	}
	if got := prepared.Load(); got > want {
		t.Errorf("prepared %d times, want %d", got, want)
	}
}

func TestDatabaseIsDropped(t *testing.T) { //nolint:tparallel // the database is looked for when its user has ended
	t.Parallel()
	var used string
	t.Run("user", func(t *testing.T) {
		used = dbtest.New(t, "", nil)
		if err := execute(t.Context(), used, "CREATE TABLE t (n INT8 PRIMARY KEY)"); err != nil {
			t.Fatal(err)
		}
		conn, err := pgx.Connect(t.Context(), used) // still connected when the test ends
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
	})
	u, err := url.Parse(used)
	if err != nil {
		t.Fatal(err)
	}
	find := "SELECT count(*) FROM pg_database WHERE datname = '" + strings.TrimPrefix(u.Path, "/") + "'"
	if got := count(t, dbtest.New(t, "", nil), find); got != 0 {
		t.Errorf("%s is still there", u.Path)
	}
}

// TestReusedDatabaseIsAsPrepared: whatever a test has done to the rows, the next one finds those that were prepared, and
// foreign keys refuse as before.
func TestReusedDatabaseIsAsPrepared(t *testing.T) { //nolint:tparallel // each user begins where the one before has ended
	t.Parallel()
	prepare := func(ctx context.Context, url string) error {
		return execute(ctx, url, "CREATE TABLE parent (n INT8 PRIMARY KEY); CREATE TABLE child (n INT8 PRIMARY KEY REFERENCES parent (n)); "+
			"INSERT INTO parent VALUES (1), (2); INSERT INTO child VALUES (1)")
	}
	last := ""
	for _, x := range []struct {
		change string
		again  bool // the database before is used
	}{
		{"DELETE FROM child; DELETE FROM parent; INSERT INTO parent VALUES (7); INSERT INTO child VALUES (7)", false},
		{"UPDATE parent SET n = 3 WHERE n = 2", true},
		{"DROP TABLE child", true},
		{"ALTER TABLE child ALTER COLUMN n SET DEFAULT 4", false},
		{"CREATE FUNCTION f() RETURNS TRIGGER LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'", false},
		{"ALTER TABLE child ADD CONSTRAINT few CHECK (n < 100)", false},
		{"INSERT INTO parent SELECT n FROM generate_series(10, 300000) AS s(n)", false},
		{"SELECT 1", false},
	} {
		t.Run(x.change, func(t *testing.T) {
			url := dbtest.Reused(t, "reused "+t.Name()[:len("TestReusedDatabaseIsAsPrepared")], prepare)
			if dbtest.Engine(t) == database.PostgreSQL && (url == last) != x.again {
				t.Errorf("it is %s after %s: a changed schema or many rows alone need another one", url, last)
			}
			last = url
			if n := count(t, url, "SELECT sum(n)::INT8 FROM parent"); n != 3 {
				t.Errorf("the sum of parents is %d", n)
			}
			if n := count(t, url, "SELECT sum(n)::INT8 FROM child"); n != 1 {
				t.Errorf("the sum of children is %d", n)
			}
			if err := execute(t.Context(), url, "INSERT INTO child VALUES (9)"); err == nil {
				t.Error("a child without a parent is let in")
			}
			if err := execute(t.Context(), url, x.change); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestReusedDatabaseHasNoOpenTransactions: what a test has left open ends before the next one has its database.
func TestReusedDatabaseHasNoOpenTransactions(t *testing.T) { //nolint:tparallel // the second begins where the first has ended
	t.Parallel()
	prepare := func(ctx context.Context, url string) error {
		return execute(ctx, url, "CREATE TABLE held (n INT8 PRIMARY KEY); INSERT INTO held VALUES (1)")
	}
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) {
			url := dbtest.Reused(t, "open transactions", prepare)
			conn, err := pgx.Connect(t.Context(), url)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), "BEGIN; UPDATE held SET n = n + 1"); err != nil {
				t.Fatal(err)
			}
			if n := count(t, url, "SELECT sum(n)::INT8 FROM held"); n != 1 {
				t.Errorf("%d is held", n)
			}
			if name == "second" {
				conn.Close(t.Context())
			}
		})
	}
}

// recorder is a TB that remembers Fatalf instead of failing this test.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	panic(r)
}

func fatal(t *testing.T, key string, prepare dbtest.Prepare) (text string) {
	t.Helper()
	r := &recorder{TB: t}
	defer func() {
		if recover() != nil {
			text = r.fatal
		}
	}()
	dbtest.New(r, key, prepare)
	return ""
}

func TestFailedPreparationIsNoTemplate(t *testing.T) {
	t.Parallel()
	broken := func(context.Context, string) error { return errors.New("syntax error in 0007") }
	key := t.Name()
	for range 2 {
		if got := fatal(t, key, broken); !strings.Contains(got, "syntax error in 0007") {
			t.Errorf("New says %q", got)
		}
	}
	if dbtest.Engine(t) != database.PostgreSQL {
		return
	}
	if got := fatal(t, "", schema); !strings.Contains(got, "needs a key") {
		t.Errorf("without a key New says %q", got)
	}
	find := "SELECT count(*) FROM pg_database WHERE datname LIKE 'gerbang_template_%' AND datistemplate AND datallowconn"
	if got := count(t, dbtest.New(t, "", nil), find); got != 0 {
		t.Errorf("%d unfinished templates pass for finished ones", got)
	}
	if got := child(t, dbtest.New(t, "", nil), key); got != nil { // another process makes what this one could not
		t.Errorf("a template left half-made stays so: %v", got)
	}
}

// TestProcessesShareATemplate runs this test binary several times at once on one server, as go test does.
func TestProcessesShareATemplate(t *testing.T) {
	t.Parallel()
	server := dbtest.New(t, "", nil)
	var children sync.WaitGroup
	for range 3 {
		children.Go(func() {
			if err := child(t, server, t.Name()); err != nil {
				t.Error(err)
			}
		})
	}
	children.Wait()
}

func child(t *testing.T, server, key string) error {
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsAnotherProcess$", "-test.v")
	cmd.Env = append(os.Environ(), childVariable+"="+key, dbtest.URLVariable+"="+server)
	out, err := cmd.CombinedOutput()
	if err == nil && !strings.Contains(string(out), "--- PASS: TestAsAnotherProcess") {
		err = errors.New("the test did not run")
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func TestAsAnotherProcess(t *testing.T) {
	t.Parallel()
	key := os.Getenv(childVariable)
	if key == "" {
		t.Skip("runs as a child of other tests")
	}
	if got := count(t, dbtest.New(t, key, schema), "SELECT n FROM item"); got != 1 {
		t.Errorf("n = %d", got)
	}
}

func TestStartWithoutAServer(t *testing.T) {
	_, err := dbtest.Start(t.Context(), dbtest.Wanted{Engine: "sqlite"})
	if err == nil || !strings.Contains(err.Error(), "unknown engine") {
		t.Errorf("Start = %v", err)
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv(database.BinaryVariable, "")
	_, err = dbtest.Start(t.Context(), dbtest.Wanted{Engine: database.CockroachDB})
	if !errors.Is(err, database.ErrNoServer) || !strings.Contains(err.Error(), "no cockroach on the PATH") {
		t.Errorf("Start = %v; CockroachDB was insisted on", err)
	}
}

// TestBinaryRunsUnderTestserver proves that a found binary goes to cockroach-go's testserver and nothing is
// downloaded: the testserver asks the binary for its version first.
func TestBinaryRunsUnderTestserver(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "roach")
	body := "#!/bin/sh\necho \"$@\" >>" + dir + "/calls\nexit 9\n"
	if err := os.WriteFile(binary, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", dir) // the testserver leaves a directory behind
	t.Setenv(database.BinaryVariable, binary)
	if _, err := dbtest.Start(t.Context(), dbtest.Wanted{Engine: database.CockroachDB}); err == nil {
		t.Fatal("a broken binary gave a server")
	}
	if calls, _ := os.ReadFile(filepath.Join(dir, "calls")); string(calls) != "version\n" {
		t.Errorf("calls = %q", calls)
	}
}
