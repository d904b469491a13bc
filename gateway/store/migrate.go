package store

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib" // goose speaks database/sql
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations/*.sql
var migrations embed.FS

// A replica waits five minutes for another's migrations, and is soon there when
// they are done; goose itself asks every five seconds.
const (
	lockRetry   = 250 * time.Millisecond
	lockRetries = 1200
)

// baseline is the version of the first schema. Versions before it were never
// released.
const baseline = 500

// Migrate brings the database at the URL to this version's tables. Any number
// of replicas may call it at once; one applies, the others wait. It refuses a
// database that holds versions from before the baseline, and leaves it as it is.
func Migrate(ctx context.Context, url string, log *slog.Logger) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return errURL
	}
	config.ConnectTimeout = connectTimeout
	db := stdlib.OpenDB(*config)
	defer db.Close()
	if err := refuseUnreleased(ctx, db); err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	// A lock table, because CockroachDB's advisory locks do nothing.
	locker, err := lock.NewPostgresTableLocker(lock.WithTableLockTimeout(lockRetry, lockRetries), lock.WithTableLogger(log))
	if err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithLocker(locker), goose.WithDisableGlobalRegistry(true), goose.WithSlog(log))
	if err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("store: migrate: %w", err)
	}
	return nil
}

// refuseUnreleased refuses a database from before the first release: with versions from before the baseline, or without one that every
// release before its newest has.
func refuseUnreleased(ctx context.Context, db *sql.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT DISTINCT version_id FROM goose_db_version WHERE version_id > 0 ORDER BY version_id")
	if pgErr, refused := errors.AsType[*pgconn.PgError](err); refused && pgErr.Code == undefinedTable {
		return nil
	}
	if err != nil {
		return err
	}
	defer rows.Close()
	var has []int64
	for rows.Next() {
		var version int64
		if err := rows.Scan(&version); err != nil {
			return err
		}
		has = append(has, version)
	}
	if err := rows.Err(); err != nil || len(has) == 0 {
		return err
	}
	const instead = "no migration leads from it to version %d: use an empty database, and drop this one once nothing in it is needed"
	if has[0] < baseline {
		return fmt.Errorf("the database holds version %d of a schema that was never released, and "+instead, has[0], baseline)
	}
	for _, version := range versions() {
		if version < has[len(has)-1] && !slices.Contains(has, version) {
			return fmt.Errorf("the database has the schema %d without %d, as no release has, and "+instead, has[len(has)-1], version, newest)
		}
	}
	return nil
}

// undefinedTable is the code of a database that nobody has migrated yet.
const undefinedTable = "42P01"

// MigrationsDigest names the set of migrations, for caches of migrated databases.
func MigrationsDigest() string { return MigrationsUpTo(newest) }

// MigrationsUpTo names the migrations up to a version with all that is in them.
func MigrationsUpTo(version int64) string {
	hash := sha256.New()
	for _, name := range migrationNames() {
		if versionOf(name) <= version {
			content, _ := migrations.ReadFile(name) // it is embedded
			fmt.Fprintf(hash, "%s\n%s\n", name, content)
		}
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// migrationNames are the files' names, the oldest first.
func migrationNames() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic(errors.New("store: there are no migrations")) // they are embedded
	}
	return names
}

// versionOf is the number in the name of a migration's file.
func versionOf(name string) int64 {
	const prefix, digits = len("migrations/"), 5
	version, err := strconv.ParseInt(name[prefix:prefix+digits], 10, 64)
	if err != nil {
		panic(err)
	}
	return version
}

// versions are those of the migrations, the oldest first.
func versions() (all []int64) {
	for _, name := range migrationNames() {
		all = append(all, versionOf(name))
	}
	return all
}

// newest is the version that [Migrate] leads to.
var newest = slices.Max(versions())

// NewestSchema is the version that [Migrate] leads to.
func NewestSchema() int64 { return newest }
