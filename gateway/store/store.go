package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Engine is the database product behind the connection.
type Engine string

// The engines that the same SQL runs on.
const (
	CockroachDB Engine = "cockroachdb"
	PostgreSQL  Engine = "postgresql"
)

// ErrNotFound says that there is no such row.
var ErrNotFound = movement.ErrNotFound

// Store holds the connections to one database. It is safe for concurrent use.
type Store struct {
	pool    *pgxpool.Pool
	queries *dbsqlc.Queries
	writes  *dbsqlc.Queries // of movements, which may share commits
	shared  *sharedCommits  // nil where every write has a commit of its own
	engine  Engine
}

// Options tune the connections.
type Options struct {
	MaxConns int32 // 0: 32
	// OwnCommits gives each write of a movement a commit of its own on PostgreSQL
	// too, as on CockroachDB. Otherwise those that arrive together share one.
	OwnCommits bool
}

// errURL does not wrap the parser's error, which would repeat the URL and may so
// repeat a password.
var errURL = errors.New("store: the database URL can't be read; it must look like postgres://user@host:port/name")

const (
	defaultMaxConns = 32
	connectTimeout  = 5 * time.Second
)

// Open connects to the database at a postgres:// URL and finds out which engine
// it is. It does not migrate.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errURL
	}
	config.MaxConns = options.MaxConns
	if config.MaxConns <= 0 {
		config.MaxConns = defaultMaxConns
	}
	config.ConnConfig.ConnectTimeout = connectTimeout
	config.ConnConfig.RuntimeParams["application_name"] = "gerbang"
	config.ConnConfig.RuntimeParams["timezone"] = "UTC"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("store: connect: %w", err)
	}
	s := &Store{pool: pool, queries: dbsqlc.New(pool)}
	if err := pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		s.engine = engineOf(c.Conn().PgConn())
		return nil
	}); err != nil {
		pool.Close()
		return nil, fmt.Errorf("store: connect: %w", err)
	}
	s.writes = s.queries
	if s.engine == PostgreSQL && !options.OwnCommits {
		s.shared = newSharedCommits(pool)
		s.writes = dbsqlc.New(s.shared)
	}
	return s, nil
}

// Close waits for the writes under way and ends all connections. Nothing may
// be asked of the store any more.
func (s *Store) Close() {
	if s.shared != nil {
		s.shared.close()
	}
	s.pool.Close()
}

// Engine tells which product the database is.
func (s *Store) Engine() Engine { return s.engine }

// Ping tells whether the database answers.
func (s *Store) Ping(ctx context.Context) error { return s.pool.Ping(ctx) }

func engineOf(conn *pgconn.PgConn) Engine {
	if conn.ParameterStatus("crdb_version") != "" {
		return CockroachDB
	}
	return PostgreSQL
}

// unclear are the codes after which a statement may have been committed all the
// same: connection gone, completion unknown, shutdown, and what the engine could
// not name. After every other code it was not.
var unclear = []string{"08", "40003", "57P", "58", "XX"}

// ambiguous tells whether a statement that failed may have been committed all
// the same: the connection broke, or the engine itself says it does not know.
func ambiguous(err error) bool {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, errClosed) {
		return false
	}
	if _, unconnected := errors.AsType[*pgconn.ConnectError](err); unconnected {
		return false
	}
	// Of a connection that is cut during COMMIT pgx says "conn closed", and that it
	// was closed before anything was sent.
	if pgconn.SafeToRetry(err) && !errors.Is(err, pgconn.ErrConnClosed) {
		return false
	}
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return !ok || slices.ContainsFunc(unclear, func(code string) bool { return strings.HasPrefix(pgErr.Code, code) })
}

const (
	// readBackFor is how long a caller asks after an ambiguous commit.
	readBackFor = 2 * time.Second
	// readBackPause lies between two tries; the first connections of the pool may
	// be as dead as the one that was cut.
	readBackPause = 20 * time.Millisecond
)

// readBack asks what became of an ambiguous commit, with a context of its own,
// because the one at hand may be what ended.
func readBack[T any](ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readBackFor)
	defer cancel()
	return backoff.Retry(ctx, func() (T, error) {
		found, err := read(ctx)
		if errors.Is(err, ErrNotFound) {
			return found, backoff.Permanent(err)
		}
		return found, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(readBackPause)))
}

// micro cuts a time to what the database keeps, so that what was written and
// what is read back are equal.
func micro(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = micro(t)
	return &t
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func text(document []byte) *string {
	if document == nil {
		return nil
	}
	s := string(document)
	return &s
}

func document(s *string) []byte {
	if s == nil {
		return nil
	}
	return []byte(*s)
}

const (
	foreignKey     = "23503" // a row points to one that is not there
	checkViolation = "23514" // a row would break a constraint of its table
)

func notFound(err error) error {
	pgErr, refused := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, pgx.ErrNoRows) || refused && pgErr.Code == foreignKey {
		return ErrNotFound
	}
	return err
}
