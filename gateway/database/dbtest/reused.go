package dbtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// pool holds the databases that tests of this process have given back, by key.
var pool = struct {
	sync.Mutex
	free map[string][]string // names
}{free: map[string][]string{}}

// Reused is New with a database of a test before, whose rows are again those that prepare made: with it the console's tests
// take 0.7 of their processor time.
// A test that changes the schema needs New. All connections of the test are to be closed when it
// ends, or at least to write nothing any more.
func Reused(tb testing.TB, key string, prepare Prepare) string {
	tb.Helper()
	s := server(tb)
	if s.Engine == database.CockroachDB { // foreign keys can't be put aside for a moment there
		return New(tb, key, prepare)
	}
	ctx := tb.Context()
	name := take(key)
	if name == "" {
		name = newName()
		if err := s.createFor(ctx, name, key, prepare); err != nil {
			tb.Fatalf("dbtest: %v", err)
		}
		if err := save(ctx, withDatabase(s.URL, name)); err != nil {
			tb.Fatalf("dbtest: %v", err)
		}
	}
	url := withDatabase(s.URL, name)
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupPatience)
		defer cancel()
		if err := restore(ctx, url); err != nil { // it is not as it was: no test may have it
			tb.Logf("dbtest: %s is not used again: %v", name, err)
			if err := s.drop(ctx, name); err != nil {
				tb.Logf("dbtest: %s is left behind: %v", name, err)
			}
			return
		}
		pool.Lock()
		defer pool.Unlock()
		pool.free[key] = append(pool.free[key], name)
	})
	return url
}

// take takes a free database from the pool, "" if there is none.
func take(key string) string {
	pool.Lock()
	defer pool.Unlock()
	free := pool.free[key]
	if len(free) == 0 {
		return ""
	}
	name := free[len(free)-1]
	pool.free[key] = free[:len(free)-1]
	return name
}

// dropPool drops what is in the pool, since several processes may use one server.
func (s *Server) dropPool(ctx context.Context) error {
	pool.Lock()
	defer pool.Unlock()
	for _, free := range pool.free {
		for _, name := range free {
			if err := s.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	clear(pool.free)
	return nil
}

// tables lists those of a test together with those that were saved: one that was dropped is among them.
const tables = "SELECT DISTINCT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
	"WHERE c.relkind = 'r' AND n.nspname IN ('public', 'dbtest') ORDER BY 1"

// save keeps the rows that prepare has made beside the tables.
func save(ctx context.Context, url string) error {
	return eachTable(ctx, url, "CREATE SCHEMA dbtest;", func(table string) string {
		return fmt.Sprintf("CREATE TABLE dbtest.%[1]s AS TABLE public.%[1]s;", table)
	})
}

// restore brings back the rows that were saved. Foreign keys are not checked meanwhile.
func restore(ctx context.Context, url string) error {
	return eachTable(ctx, url, "SET LOCAL session_replication_role = replica;", func(table string) string {
		return fmt.Sprintf("DELETE FROM public.%[1]s; INSERT INTO public.%[1]s TABLE dbtest.%[1]s;", table)
	})
}

// eachTable executes a statement, and others for each table, in one transaction.
func eachTable(ctx context.Context, url, first string, then func(table string) string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, tables)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var all strings.Builder
	all.WriteString("BEGIN;" + first)
	for _, name := range names {
		all.WriteString(then(pgx.Identifier{name}.Sanitize()))
	}
	all.WriteString("COMMIT")
	_, err = conn.PgConn().Exec(ctx, all.String()).ReadAll()
	return err
}
