// Package migrated gives tests databases with this version's tables, and stores on them. What one test leaves of a
// database, its connections and their plans, the next one has: each connection costs PostgreSQL a process. It is test
// support, and must not know what stands in the tables.
package migrated

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Migrate brings a database to this version's tables, and tells nobody.
func Migrate(ctx context.Context, url string) error {
	return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
}

// Database returns the URL of a migrated database that is the test's own until it ends (dbtest.Reused).
func Database(tb testing.TB) string {
	tb.Helper()
	return dbtest.Reused(tb, store.MigrationsDigest(), Migrate)
}

// New is Database for a test that kills what is in the database, or outlives it.
func New(tb testing.TB) string {
	tb.Helper()
	return dbtest.New(tb, store.MigrationsDigest(), Migrate)
}

// connections are the options that decide which connections a store has.
type connections struct {
	most                 int32
	ownCommits, readOnly bool
}

// Open returns a store that ends with the test. Its connections stay open for the next one that has the same.
func Open(tb testing.TB, url string, options store.Options) *store.Store {
	tb.Helper()
	key := connections{options.MaxConns, options.OwnCommits, options.ReadOnly}
	s, err := again(dbtest.Kept(url, key), options)
	if err != nil {
		s, err = store.Open(tb.Context(), url, options)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if again, err := s.Again(nil); err == nil {
			dbtest.Keep(url, key, again)
		} else {
			s.Close()
		}
	})
	return s
}

var errNone = errors.New("no test before had the same")

// again is what a test before has left, with the seal of this one's options.
func again(left dbtest.Closer, options store.Options) (*store.Store, error) {
	s, kept := left.(*store.Store)
	if !kept {
		return nil, errNone
	}
	next, err := s.Again(options.Seal)
	if err != nil { // the pool looks after a connection just now
		s.Close()
	}
	return next, err
}
