// Package database finds a database server for this machine, or starts one.
//
// It owns the order in which the ways to a server are tried, the private cluster that a laptop runs on, and the
// life of every process it starts: none outlives the gateway for long. It must not know the schema: whoever opens
// a server migrates it. It never deletes data that it did not make in the same call, and never installs anything
// unless Install is called.
package database

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
)

// Engine names the SQL dialect and transaction behaviour of a server.
type Engine string

// The two engines that Gerbang's one SQL text runs on.
const (
	CockroachDB Engine = "cockroachdb"
	PostgreSQL  Engine = "postgresql"
)

// URLVariable names the environment variable that points to a server which runs already.
const URLVariable = "GERBANG_DATABASE_URL"

// databaseName is the database that Open connects to when the URL names none; it is created when missing.
const databaseName = "gerbang"

// engineOf finds the engine by a connection's parameters (pgconn's ParameterStatus fits): CockroachDB announces
// itself by crdb_version, which PostgreSQL does not have.
func engineOf(parameter func(name string) string) Engine {
	if parameter("crdb_version") != "" {
		return CockroachDB
	}
	return PostgreSQL
}

// Options say which server is wanted and where one of our own keeps its files.
type Options struct {
	// URL is a server that runs already; empty means GERBANG_DATABASE_URL. Where either is set no other way is tried.
	URL string
	// Dir is the directory for the data of a server that Open starts. One process at a time may hold it.
	Dir string
	// Ephemeral asks for a server without durability in a temporary directory that Close removes, for tests. It
	// ignores Dir and GERBANG_DATABASE_URL, so that no test ever writes into a database somebody keeps.
	Ephemeral bool
	// Durable makes the commits of an Ephemeral server as durable, and as slow, as those of a kept one: for measuring.
	Durable bool
	// Engine, when set, leaves out the ways that lead to the other engine.
	Engine Engine
	// Log receives what was found and what was passed over; nil discards it.
	Log *slog.Logger
	// Progress gets a text about a wait that takes longer than a second; nil discards it.
	Progress func(message string)
	// Getenv replaces os.Getenv; nil means os.Getenv.
	Getenv func(name string) string

	// postgresPlaces replaces the directories that PostgreSQL's binaries are looked for in.
	postgresPlaces []string
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.postgresPlaces == nil {
		o.postgresPlaces = knownPlaces
	}
	return o
}

// Server is a database server that answers. Whoever opened it closes it.
type Server struct {
	url    string
	engine Engine
	source string
	done   <-chan struct{}
	proc   *process // nil for a server that somebody else runs
	home   *home    // nil for a server that somebody else runs
	after  func()   // what is left to tidy when the process is gone; may be nil

	once     sync.Once
	closing  chan struct{}
	closeErr error
}

// URL is a postgres:// URL for the database to use. It holds the password: never log it.
func (s *Server) URL() string { return s.url }

// Engine is the engine that answered, whatever the URL or the way promised.
func (s *Server) Engine() Engine { return s.engine }

// Source says, for people, which way led to the server.
func (s *Server) Source() string { return s.source }

// Done is closed when the server's process has ended, by Close or by itself, or, for a server that somebody else
// runs, when Close was called.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err says, once Done is closed, why a server ended that nobody closed; nil otherwise.
func (s *Server) Err() error {
	select {
	case <-s.closing:
		return nil
	default:
	}
	select {
	case <-s.done:
		return s.proc.ended() // there is a process: without one, done is closing
	default:
		return nil
	}
}

// Close stops a server that Open started, and waits until it is gone: a fast shutdown first, SIGKILL when ctx ends
// or the shutdown takes too long, which both engines survive without loss. A server of somebody else is left alone.
// Only the first call does anything; later ones return its result.
func (s *Server) Close(ctx context.Context) error {
	s.once.Do(func() {
		close(s.closing)
		if s.proc != nil {
			s.closeErr = s.proc.shutdown(ctx)
		}
		if s.after != nil {
			s.after()
		}
		if s.home != nil {
			s.closeErr = errors.Join(s.closeErr, s.home.release())
		}
	})
	return s.closeErr
}

// Open returns a server that answers, found or started in this order: the URL; a cockroach binary; PostgreSQL's
// server binaries; Docker. A data directory that holds data already is opened by the way that made it and by no
// other, so a newly installed engine never hides what was written before. Where no way works the error has one
// line for each; it is ErrNoServer when there was nothing on the machine that could even be tried.
func Open(ctx context.Context, o Options) (*Server, error) {
	o = o.withDefaults()
	raw, source := o.URL, "the given URL"
	if raw == "" && !o.Ephemeral {
		raw, source = o.Getenv(URLVariable), URLVariable
	}
	if raw != "" {
		return openURL(ctx, o, raw, source)
	}
	h, err := openHome(ctx, o)
	if err != nil {
		return nil, err
	}
	s, err := tryWays(ctx, o, h)
	if err != nil {
		return nil, errors.Join(err, h.release())
	}
	o.Log.Info("database is up", "engine", string(s.engine), "source", s.source)
	return s, nil
}

// started wraps a process that answers at url into a Server.
func started(p *process, h *home, at endpoint, source string, after func()) *Server {
	return &Server{
		url: at.url, engine: at.engine, source: source,
		done: p.done, proc: p, home: h, after: after, closing: make(chan struct{}),
	}
}

// onDisk reports whether commits must be on the disk.
func (o Options) onDisk() bool { return !o.Ephemeral || o.Durable }

func (o Options) path() string { return cmp.Or(o.Getenv("PATH"), os.DevNull) }
