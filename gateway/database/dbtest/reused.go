package dbtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// pool holds the databases that tests of this process have given back, by key, and what is open of all of them.
var pool = struct {
	sync.Mutex
	free map[string][]string // names
	open map[string]*open    // by URL
}{free: map[string][]string{}, open: map[string]*open{}}

// open is what stays open of a reused database between tests: PostgreSQL starts a process for each connection, which then
// reads the catalog and plans each statement anew.
type open struct {
	conns *pgxpool.Pool // of Conn
	kept  []kept
}

type kept struct {
	key any
	Closer
}

// Closer is what can be kept.
type Closer interface{ Close() }

// mostKept is how much of what tests opened of a database stays open; the oldest goes first.
const mostKept = 2

// Keep leaves something open for the next test that has the reused database and asks for the same key. Nothing may use it
// any more. It is closed at once where the database is not used again.
func Keep(url string, key any, c Closer) {
	pool.Lock()
	defer pool.Unlock()
	of := pool.open[url]
	if of == nil {
		c.Close()
		return
	}
	if of.kept = append(of.kept, kept{key, c}); len(of.kept) > mostKept {
		of.kept[0].Close()
		of.kept = of.kept[1:]
	}
}

// Kept returns what Keep has left open, nil for nothing.
func Kept(url string, key any) Closer {
	pool.Lock()
	defer pool.Unlock()
	of := pool.open[url]
	if of == nil {
		return nil
	}
	for i, k := range slices.Backward(of.kept) {
		if k.key == key {
			of.kept = slices.Delete(of.kept, i, i+1)
			return k.Closer
		}
	}
	return nil
}

// Conn lends a connection to a database: one that stays open where the database is reused.
func Conn(tb testing.TB, url string, use func(*pgx.Conn)) {
	tb.Helper()
	pool.Lock()
	of := pool.open[url]
	pool.Unlock()
	if of == nil {
		conn, err := pgx.Connect(tb.Context(), url)
		if err != nil {
			tb.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(tb.Context()))
		use(conn)
		return
	}
	conn, err := of.conns.Acquire(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Release()
	use(conn.Conn())
}

// opened opens a database for many tests.
func opened(ctx context.Context, url string) (*open, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // tests change what a prepared statement has read
	conns, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	of := &open{conns: conns}
	pool.Lock()
	defer pool.Unlock()
	pool.open[url] = of
	return of, nil
}

// closed closes what is open of a database.
func closed(url string) {
	pool.Lock()
	defer pool.Unlock()
	of := pool.open[url]
	delete(pool.open, url)
	for _, k := range of.kept {
		k.Close()
	}
	of.conns.Close()
}

// Reused is New with a database of a test before, whose rows are again those that prepare made: with it the console's tests
// take half of their processor time. What a test still has under way when it ends is cut off, and idle connections stay. A database whose schema a test
// has changed, or into which it has written much, is dropped.
func Reused(tb testing.TB, key string, prepare Prepare) string {
	tb.Helper()
	s := server(tb)
	if s.Engine == database.CockroachDB { // foreign keys can't be put aside for a moment there
		return New(tb, key, prepare)
	}
	ctx := tb.Context()
	name := take(key)
	url := withDatabase(s.URL, name)
	if name == "" {
		name = newName()
		url = withDatabase(s.URL, name)
		if err := s.createFor(ctx, name, key, prepare); err != nil {
			tb.Fatalf("dbtest: %v", err)
		}
		of, err := opened(ctx, url)
		if err == nil {
			err = of.conns.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return save(ctx, c.Conn()) })
		}
		if err != nil {
			tb.Fatalf("dbtest: %v", err)
		}
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupPatience)
		defer cancel()
		pool.Lock()
		of := pool.open[url]
		pool.Unlock()
		if err := of.conns.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return restore(ctx, c.Conn()) }); err != nil { // no test may have it
			if !errors.Is(err, errChanged) {
				tb.Logf("dbtest: %s is not used again: %v", name, err)
			}
			closed(url)
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
	for _, free := range pool.free {
		for _, name := range free {
			closed(withDatabase(s.URL, name))
			if err := s.drop(ctx, name); err != nil {
				return err
			}
		}
	}
	clear(pool.free)
	return nil
}

// tables lists those of a test together with those that were saved: one that was dropped is among them. One in which
// nothing ever was has nothing to be brought back.
const tables = "SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace " +
	"WHERE c.relkind = 'r' AND n.nspname IN ('public', 'dbtest') GROUP BY c.relname HAVING $1 OR count(*) < 2 OR sum(pg_relation_size(c.oid)) > 0 ORDER BY 1"

// schema is a digest of all that a test may have changed beside rows.
const schema = `(WITH classes AS (SELECT * FROM pg_class WHERE relnamespace = 'public'::regnamespace)
	SELECT md5(string_agg(x, ';' ORDER BY x)) FROM (
	SELECT (oid, relname, relkind)::text FROM classes
	UNION ALL SELECT (a.attrelid, a.attname, a.atttypid, a.attnotnull)::text FROM pg_attribute a JOIN classes c ON c.oid = a.attrelid
	UNION ALL SELECT (d.oid, d.adbin)::text FROM pg_attrdef d JOIN classes c ON c.oid = d.adrelid
	UNION ALL SELECT oid::text FROM pg_constraint WHERE connamespace = 'public'::regnamespace
	UNION ALL SELECT (t.oid, t.tgenabled)::text FROM pg_trigger t JOIN classes c ON c.oid = t.tgrelid
	UNION ALL SELECT oid::text FROM pg_proc WHERE pronamespace = 'public'::regnamespace) AS all_of(x))`

// mostLeft is how many bytes of rows, dead ones among them, a database may have and be used again.
const mostLeft = 8 << 20

// save keeps the rows that prepare has made beside the tables, and what the schema is.
func save(ctx context.Context, conn *pgx.Conn) error {
	first := "CREATE SCHEMA dbtest; CREATE VIEW dbtest.schema AS SELECT " + schema + " AS now; CREATE MATERIALIZED VIEW dbtest.was AS TABLE dbtest.schema;"
	return eachTable(ctx, conn, true, first, func(table string) string {
		return fmt.Sprintf("CREATE TABLE dbtest.%[1]s AS TABLE public.%[1]s;", table)
	})
}

var errChanged = errors.New("its schema or its size is another one")

// restore ends what the test has left under way, refuses a database that is not as it was but for its rows, and brings back
// the rows that were saved. Foreign keys are not checked meanwhile.
func restore(ctx context.Context, conn *pgx.Conn) error {
	for left := true; left; { // who ends holds its rows until it is gone
		if err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) > 0 FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'`, pgx.QueryExecModeCacheStatement).Scan(&left); err != nil {
			return err
		}
	}
	var same bool
	if err := conn.QueryRow(ctx, `SELECT (SELECT now FROM dbtest.schema) = (SELECT now FROM dbtest.was) AND
		(SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r') < $1`,
		pgx.QueryExecModeCacheStatement, mostLeft).Scan(&same); err != nil {
		return err
	}
	if !same {
		return errChanged
	}
	return eachTable(ctx, conn, false, "SET LOCAL session_replication_role = replica;", func(table string) string {
		return fmt.Sprintf("DELETE FROM public.%[1]s; INSERT INTO public.%[1]s TABLE dbtest.%[1]s;", table)
	})
}

// eachTable executes a statement, and others for each table that has rows, or for all, in one transaction.
func eachTable(ctx context.Context, conn *pgx.Conn, empty bool, first string, then func(table string) string) error {
	rows, err := conn.Query(ctx, tables, pgx.QueryExecModeCacheStatement, empty)
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
