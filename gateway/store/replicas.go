package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// rememberReplicas is how long a gateway that has ended is remembered.
const rememberReplicas = 30 * 24 * time.Hour

// schemas is how many versions share a baseline. Versions from a baseline to the next
// only add, so a gateway works on every schema from its own newest version to the end
// of its thousand.
const schemas = 1000

// Probe tells whether a replica can do its work on this database: the schema is one that
// it knows, a commit is taken, and none of this replica's was refused a moment ago for
// what ails the database. A database that is full, read-only or behind a
// broken disk answers reads all the same. The problem is for whoever may ask, "" where
// there is none; its cause is for the log.
func (s *Store) Probe(ctx context.Context, replica uuid.UUID, now time.Time) (problem string, cause error) {
	if problem, cause = s.Schema(ctx); problem != "" {
		return problem, cause
	}
	if err := s.queries.SeeReplica(ctx, dbsqlc.SeeReplicaParams{ReplicaID: replica, SeenAt: micro(now)}); err != nil {
		return "takes no writes", err
	}
	if broken := s.writer.broken.Load(); broken != nil && time.Since(broken.at) < brokenFor {
		return "takes no writes", broken.err
	}
	return "", nil
}

// Schema tells what is wrong with a database's schema, "" where this version of the
// gateway knows it.
func (s *Store) Schema(ctx context.Context) (problem string, cause error) {
	var version int64
	err := s.pool.QueryRow(ctx, "SELECT version_id FROM goose_db_version WHERE is_applied ORDER BY version_id DESC LIMIT 1").Scan(&version)
	pgErr, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case refused && pgErr.Code == undefinedTable, errors.Is(err, pgx.ErrNoRows):
		return "has no tables of a gateway", nil
	case err != nil:
		return "does not answer", err
	}
	return knows(version), nil
}

// ForgetReplicas removes gateways that ended long ago.
func (s *Store) ForgetReplicas(ctx context.Context, now time.Time) error {
	return s.queries.ForgetReplicas(ctx, micro(now.Add(-rememberReplicas)))
}

// knows tells what is wrong with a schema for this version of the gateway.
func knows(version int64) (problem string) {
	switch next := newest - newest%schemas + schemas; {
	case version < newest:
		return fmt.Sprintf("has the schema %d, and this version of the gateway needs %d: run gerbang migrate", version, newest)
	case version >= next:
		return fmt.Sprintf("has the schema %d, of a later version of the gateway: this one works on those below %d", version, next)
	}
	return ""
}

// newest is the version that [Migrate] leads to.
var newest = newestMigration()

func newestMigration() int64 {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic(errors.New("store: there are no migrations")) // they are embedded
	}
	const prefix, digits = len("migrations/"), 5
	version, err := strconv.ParseInt(names[len(names)-1][prefix:prefix+digits], 10, 64)
	if err != nil {
		panic(err)
	}
	return version
}
