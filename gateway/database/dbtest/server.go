// Package dbtest gives every test a database of its own, so that all tests run in parallel.
//
// It owns the one server of a test run (found in the environment, else an ephemeral one for the test process) and
// the databases on it. It must not be imported by anything but tests and their tools, and must not know the schema:
// callers say how a database is prepared.
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cockroachdb/cockroach-go/v2/testserver"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// Server is a server for a test run.
type Server struct {
	// URL is an existing database on the server, from which others are created.
	URL string
	// Engine is what answered.
	Engine database.Engine
	// Source says for people which way led to it.
	Source string

	stop  func(context.Context) error
	mu    sync.Mutex
	admin *pgxpool.Pool // nil before the first database
}

// NewServer describes a server that the caller started; stop is what Close does.
func NewServer(url string, engine database.Engine, source string, stop func(context.Context) error) *Server {
	return &Server{URL: url, Engine: engine, Source: source, stop: stop}
}

// Close stops the server and removes what it wrote.
func (s *Server) Close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin != nil {
		s.admin.Close()
	}
	return s.stop(ctx)
}

// conns are the connections over which databases are created and dropped.
func (s *Server) conns() (_ *pgxpool.Pool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admin == nil {
		s.admin, err = pgxpool.New(context.Background(), s.URL)
	}
	return s.admin, err
}

// Wanted says what server a test run needs.
type Wanted struct {
	// Engine is the engine to insist on; empty takes what the machine has.
	Engine database.Engine
	// Durable asks for commits as slow as a real server's, for benchmarks. The testserver is not used then: it keeps
	// everything in memory.
	Durable bool
}

// Start starts an ephemeral server. Without an engine it prefers PostgreSQL, which prepares databases faster, and
// takes CockroachDB where that is what the machine has. It is database.ErrNoServer when there is neither.
func Start(ctx context.Context, wanted Wanted) (*Server, error) {
	switch wanted.Engine {
	case database.CockroachDB:
		return startCockroach(ctx, wanted)
	case database.PostgreSQL:
		return startEphemeral(ctx, wanted)
	case "":
		postgres := Wanted{Engine: database.PostgreSQL, Durable: wanted.Durable}
		s, err := startEphemeral(ctx, postgres)
		if !errors.Is(err, database.ErrNoServer) {
			return s, err
		}
		s, other := startCockroach(ctx, wanted)
		if other == nil {
			return s, nil
		}
		return nil, errors.Join(err, other)
	default:
		return nil, fmt.Errorf("unknown engine %q: it is %s or %s", wanted.Engine, database.CockroachDB, database.PostgreSQL)
	}
}

func startEphemeral(ctx context.Context, wanted Wanted) (*Server, error) {
	s, err := database.Open(ctx, database.Options{
		Ephemeral: true, Engine: wanted.Engine, Durable: wanted.Durable,
		Progress: func(message string) { fmt.Fprintln(os.Stderr, "dbtest:", message) },
	})
	if err != nil {
		return nil, err
	}
	return &Server{URL: s.URL(), Engine: s.Engine(), Source: s.Source(), stop: s.Close}, nil
}

// startCockroach runs a found binary under cockroach-go's testserver, in memory, and Docker's image where there is
// only that. The binary is named to testserver, which would download one otherwise.
func startCockroach(ctx context.Context, wanted Wanted) (*Server, error) {
	binary, err := database.CockroachBinary(os.Getenv)
	if err != nil || wanted.Durable {
		return startEphemeral(ctx, Wanted{Engine: database.CockroachDB, Durable: wanted.Durable})
	}
	ts, err := testserver.NewTestServer(testserver.CockroachBinaryPathOpt(binary))
	if err != nil {
		return nil, err
	}
	stop := func(context.Context) error {
		ts.Stop()
		return nil
	}
	// Checks the version, as for any other server.
	opened, err := database.Open(ctx, database.Options{URL: ts.PGURL().String(), Engine: database.CockroachDB})
	if err != nil {
		return nil, errors.Join(err, stop(ctx))
	}
	return &Server{URL: opened.URL(), Engine: opened.Engine(), Source: "testserver with " + binary, stop: stop}, nil
}
