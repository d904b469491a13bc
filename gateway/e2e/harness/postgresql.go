package harness

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// PostgreSQL is a PostgreSQL server of the test's own, with durable commits, that
// is killed and started again. Its clients reach it at one address all the time.
type PostgreSQL struct {
	*Proxy
	dir    string
	server *database.Server
}

// NewPostgreSQL starts the server and a proxy before it. It skips the test where
// there is no PostgreSQL, or another engine is tested.
func NewPostgreSQL(t *testing.T) *PostgreSQL {
	t.Helper()
	return newPostgreSQL(t, DataDir(t))
}

func newPostgreSQL(t *testing.T, dir string) *PostgreSQL {
	t.Helper()
	RequirePostgreSQL(t)
	m := &PostgreSQL{dir: dir}
	if err := m.open(t.Context()); errors.Is(err, database.ErrNoServer) {
		t.Skipf("there is no PostgreSQL to kill: %v", err)
	} else if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.server.Close(context.Background()) })
	m.Proxy = NewProxy(t, m.server.URL())
	return m
}

// open starts the server on what is there.
func (m *PostgreSQL) open(ctx context.Context) (err error) {
	m.server, err = database.Open(ctx, database.Options{
		Dir: m.dir, Engine: database.PostgreSQL,
		Getenv: func(name string) string { // another server is never meant
			if name == database.URLVariable {
				return ""
			}
			return os.Getenv(name)
		},
	})
	return err
}

// Kill ends the server as a crash does, and starts it again after a while.
func (m *PostgreSQL) Kill(t *testing.T, away time.Duration) {
	t.Helper()
	m.Crash(t)
	<-time.After(away)
	m.again(t)
}

// Crash ends the server as a crash does.
func (m *PostgreSQL) Crash(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(m.dir, "postgresql", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-m.server.Done()
}

// again starts a server that has ended.
func (m *PostgreSQL) again(t *testing.T) {
	t.Helper()
	err := m.server.Close(t.Context())
	if err != nil {
		t.Log(err) // as it ended
	}
	// Its children hold its memory for a moment longer.
	if untilErr := Until(ReadyWithin, func() bool { err = m.open(t.Context()); return err == nil }); untilErr != nil {
		t.Fatalf("the database does not come back: %v", err)
	}
	u, err := url.Parse(m.server.URL())
	if err != nil {
		t.Fatal(err)
	}
	m.redirect(u.Host)
}

// Steps lets the server's clock be stepped, for sessions from now on: as they see it.
func (m *PostgreSQL) Steps(t *testing.T) {
	t.Helper()
	m.run(t, `CREATE SCHEMA stepped`,
		`CREATE TABLE stepped.clock AS SELECT INTERVAL '0' AS ahead`,
		`CREATE FUNCTION stepped.clock_timestamp() RETURNS TIMESTAMPTZ VOLATILE LANGUAGE SQL
			AS 'SELECT pg_catalog.clock_timestamp() + ahead FROM stepped.clock'`,
		`CREATE FUNCTION stepped.now() RETURNS TIMESTAMPTZ STABLE LANGUAGE SQL
			AS 'SELECT pg_catalog.now() + ahead FROM stepped.clock'`,
		`DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public, stepped, pg_catalog', current_database()); END $$`)
}

// Step sets the server's clock ahead of the time, or back with a negative one.
func (m *PostgreSQL) Step(t *testing.T, ahead time.Duration) {
	t.Helper()
	m.run(t, fmt.Sprintf("UPDATE stepped.clock SET ahead = INTERVAL '%d milliseconds'", ahead.Milliseconds()))
}

// ReadOnly has the server take no writes, or take them again.
func (m *PostgreSQL) ReadOnly(t *testing.T, on bool) {
	t.Helper()
	m.run(t, "SET default_transaction_read_only = off", fmt.Sprintf("ALTER SYSTEM SET default_transaction_read_only = %t", on), "SELECT pg_reload_conf()")
}

func (m *PostgreSQL) run(t *testing.T, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), m.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

// redirect leads the proxy to where the server is now.
func (w *Proxy) redirect(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}
