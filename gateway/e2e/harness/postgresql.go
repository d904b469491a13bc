package harness

import (
	"context"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
	RequirePostgreSQL(t)
	m := &PostgreSQL{dir: DataDir(t)}
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
	<-time.After(away)
	if err := m.server.Close(t.Context()); err != nil {
		t.Fatal(err)
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

// redirect leads the proxy to where the server is now.
func (w *Proxy) redirect(target string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.target = target
}
