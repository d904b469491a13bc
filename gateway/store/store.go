package store

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
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
	pools
	options Options
	closed  atomic.Bool
	pool    *pgxpool.Pool
	queries *dbsqlc.Queries
	reads   *sharedReads    // nil where each read has a round trip of its own
	single  *dbsqlc.Queries // for the reads of one row that merchants' requests need
	writer  *writer         // of movements, on connections of its own
	engine  Engine
	unfit   atomic.Pointer[error]  // as the last probe found it, nil for fit or not looked at
	problem atomic.Pointer[string] // of the last probe, nil before
	schema  atomic.Int64           // as it was read last, 0 before
	seal    func(digest []byte) []byte
}

// Options tune the connections.
type Options struct {
	MaxConns int32 // of reads and writes together, about half each; 0: 32. The clock has one more
	// OwnCommits gives each write of a movement a commit of its own on PostgreSQL too,
	// and each read a round trip, as on CockroachDB. Otherwise those that arrive together
	// share one.
	OwnCommits bool
	// ReadOnly has the database refuse every write.
	ReadOnly bool
	// Seal makes the MAC of each entry of the audit in the transaction of its act. Without
	// one, as in tests, entries have none.
	Seal func(digest []byte) []byte
}

// errURL does not wrap the parser's error, which would repeat the URL and may so
// repeat a password.
var errURL = errors.New("store: the database URL can't be read; it must look like postgres://user@host:port/name")

// Open connects to the database at a postgres:// URL and finds out which engine
// it is. It does not migrate.
func Open(ctx context.Context, url string, options Options) (*Store, error) {
	p, err := connect(ctx, url, options)
	if err != nil {
		return nil, err
	}
	s := &Store{pools: p, pool: p.all}
	if err := p.all.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		s.engine = engineOf(c.Conn().PgConn())
		return nil
	}); err != nil {
		p.close()
		return nil, fmt.Errorf("store: connect: %w", err)
	}
	s.begin(options)
	return s, nil
}

// begin has reads and writes go over the connections.
func (s *Store) begin(options Options) {
	s.options, s.seal, s.queries = options, options.Seal, dbsqlc.New(reading{s.pool})
	s.single = s.queries
	share := s.engine == PostgreSQL && !options.OwnCommits
	if share {
		s.reads = newSharedReads(s.pool)
		s.single = dbsqlc.New(s.reads)
	}
	s.writer = newWriter(s.writes, share)
}

// Close waits for the writes under way and ends all connections. The store can't be
// used afterwards.
func (s *Store) Close() {
	s.closed.Store(true)
	s.end()
	s.close()
}

// end waits for what is on its way together with others.
func (s *Store) end() {
	s.writer.close()
	if s.reads != nil {
		s.reads.close()
	}
}

// Again ends the store and returns a new one over its connections, which has another seal. It fails where Close was called
// or a connection is still in use. It is for tests: PostgreSQL starts a process for each connection.
func (s *Store) Again(seal func(digest []byte) []byte) (*Store, error) {
	if s.closed.Load() {
		return nil, errors.New("store: it is closed")
	}
	s.end()
	for _, pool := range []*pgxpool.Pool{s.all, s.writes, s.clock} {
		if stat := pool.Stat(); stat.AcquiredConns()+stat.ConstructingConns() > 0 {
			return nil, errors.New("store: a connection is in use")
		}
	}
	again := &Store{pools: s.pools, pool: s.pool, engine: s.engine}
	options := s.options
	options.Seal = seal
	again.begin(options)
	return again, nil
}

// writing are the queries of package dbsqlc that write one row, which others may have
// locked.
func (s *Store) writing(id uuid.UUID) *dbsqlc.Queries { return dbsqlc.New(s.writer.of(id)) }

// Engine tells which product the database is.
func (s *Store) Engine() Engine { return s.engine }

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
