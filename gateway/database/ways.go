package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ErrNoServer is Open's error when the machine has nothing to start: no URL, no binaries, no Docker. Installing
// PostgreSQL's binaries mends it. A server that was found and failed is a different error.
var ErrNoServer = errors.New("no database server found")

// absent is the error of a way that has nothing on this machine to try.
type absent string

func (a absent) Error() string { return string(a) }

// way is one kind of server that can be started here. Its name is written into the data directory.
type way struct {
	name   string
	title  string
	engine Engine
	open   func(context.Context, Options, *home) (*Server, error)
}

var ways = []way{
	{"cockroach", "a cockroach binary", CockroachDB, openCockroach},
	{"postgresql", "PostgreSQL's server binaries", PostgreSQL, openPostgres},
	{"docker", "Docker", CockroachDB, openDocker},
}

type failure struct {
	title string
	err   error
}

// tryWays opens the first way that works and remembers it in the data directory.
func tryWays(ctx context.Context, o Options, h *home) (*Server, error) {
	keeper := h.keeper()
	noURL := absent("none was given")
	if o.Ephemeral {
		noURL = "not used: a server that nobody keeps was asked for"
	}
	failures := []failure{{"a URL (--database-url or " + URLVariable + ")", noURL}}
	for _, w := range ways {
		if keeper != "" && keeper != w.name {
			continue
		}
		if o.Engine != "" && o.Engine != w.engine {
			failures = append(failures, failure{w.title, absent("not tried: " + string(o.Engine) + " was asked for")})
			continue
		}
		s, err := w.open(ctx, o, h)
		if err == nil {
			err = h.keep(w.name)
			if err == nil {
				return s, nil
			}
			return nil, errors.Join(err, s.Close(ctx))
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("database: %w", err)
		}
		if !errors.As(err, new(absent)) {
			o.Log.Warn("a database server was found and does not start", "way", w.name, "error", err)
		}
		failures = append(failures, failure{w.title, err})
	}
	if keeper != "" {
		return nil, keptError(h, keeper, failures)
	}
	return nil, noWayError(o, failures)
}

// keptError explains that the data in the directory can only be opened by the way that made it.
func keptError(h *home, keeper string, failures []failure) error {
	var text strings.Builder
	fmt.Fprintf(&text, "database: %s holds data made with %q, which is left untouched and can't be opened now",
		h.dir, keeper)
	errs := writeFailures(&text, failures[1:])
	text.WriteString("\nMake that server available again, or name another data directory to begin anew.")
	return &wayError{text.String(), errs}
}

// noWayError has a line for each way, and says how to get a server.
func noWayError(o Options, failures []failure) error {
	var text strings.Builder
	text.WriteString("database: no way led to a server:")
	errs := writeFailures(&text, failures)
	text.WriteString("\n" + advice(o))
	nothing := true
	for _, f := range failures {
		nothing = nothing && errors.As(f.err, new(absent))
	}
	if nothing {
		errs = append(errs, ErrNoServer)
	}
	return &wayError{text.String(), errs}
}

func advice(o Options) string {
	if o.Engine == CockroachDB {
		return "Put a cockroach binary, 24.3 or later, on the PATH or name it in " + BinaryVariable + "."
	}
	plan, err := planInstall(o.Getenv)
	if err != nil {
		return "Install PostgreSQL 15 or later or CockroachDB 24.3 or later, or set " + URLVariable + "."
	}
	return "Install PostgreSQL's server binaries (no system cluster is made or started):\n" + plan.String()
}

func writeFailures(text *strings.Builder, failures []failure) []error {
	var errs []error
	for _, f := range failures {
		fmt.Fprintf(text, "\n  - %s: %s", f.title, strings.ReplaceAll(f.err.Error(), "\n", "\n      "))
		errs = append(errs, f.err)
	}
	return errs
}

// wayError is a text for people around the errors it was made from.
type wayError struct {
	text string
	errs []error
}

func (e *wayError) Error() string   { return e.text }
func (e *wayError) Unwrap() []error { return e.errs }

// keeper names the way that made the data in this directory; empty when there is none.
func (h *home) keeper() string {
	name, err := os.ReadFile(filepath.Join(h.dir, "server"))
	if err == nil {
		return strings.TrimSpace(string(name))
	}
	// A cluster whose first start was cut off before it was noted.
	if _, err := os.Lstat(filepath.Join(h.dir, "postgresql")); err == nil {
		return "postgresql"
	}
	return ""
}

func (h *home) keep(name string) error {
	return writeFile(filepath.Join(h.dir, "server"), name+"\n")
}
