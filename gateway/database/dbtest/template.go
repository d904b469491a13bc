package dbtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database"
)

// templateLock is the advisory lock under which templates are made on a PostgreSQL server: several test processes use
// one server at once. Product SQL has no advisory locks (CockroachDB ignores them); this never runs there.
const templateLock = 0x6765726261 // "gerba"

// ensureTemplate makes the template unless another process did. It is a template only once prepare has succeeded;
// one that a killed process left half-made is dropped and made again.
func (s *Server) ensureTemplate(ctx context.Context, name string, prepare Prepare) (err error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }() // gives the lock back, too
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return err
	}
	var finished bool
	const find = "SELECT datistemplate FROM pg_database WHERE datname = $1"
	switch err := conn.QueryRow(ctx, find, name).Scan(&finished); {
	case errors.Is(err, pgx.ErrNoRows):
	case err != nil:
		return err
	case finished:
		return nil
	default:
		if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+name); err != nil {
		return err
	}
	if err := prepare(ctx, withDatabase(s.URL, name)); err != nil {
		return err
	}
	// Nobody may connect any more: a database with a connection can't be copied.
	_, err = conn.Exec(ctx, "ALTER DATABASE "+name+" IS_TEMPLATE true ALLOW_CONNECTIONS false")
	return err
}

func (s *Server) drop(ctx context.Context, name string) error {
	if s.Engine == database.CockroachDB {
		return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" CASCADE")
	}
	return s.exec(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// exec runs one statement that creates or drops a database.
func (s *Server) exec(ctx context.Context, statement string) error {
	conns, err := s.conns()
	if err != nil {
		return err
	}
	if _, err := conns.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// withDatabase returns the URL with another database.
func withDatabase(raw, name string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return raw // not possible: the server answered at it
	}
	u.Path = "/" + name
	return u.String()
}
