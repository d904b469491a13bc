package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Engine is the database product behind the connection.
type Engine string

// The engines that the same SQL runs on.
const (
	CockroachDB Engine = "cockroachdb"
	PostgreSQL  Engine = "postgresql"
)

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

// Close waits for the writes under way and ends all connections. The store can't be
// used afterwards.
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
