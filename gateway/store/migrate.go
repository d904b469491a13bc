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

// refuseUnreleased refuses a database that holds versions from before the baseline.
func refuseUnreleased(ctx context.Context, db *sql.DB) error {
	var version int64
	err := db.QueryRowContext(ctx, "SELECT version_id FROM goose_db_version WHERE version_id > 0 AND version_id < $1 ORDER BY version_id DESC LIMIT 1",
		baseline).Scan(&version)
	pgErr, refused := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil:
		return fmt.Errorf("the database holds version %d of a schema that was never released, and no migration leads from it to version %d: "+
			"use an empty database, and drop this one once nothing in it is needed", version, baseline)
	case errors.Is(err, sql.ErrNoRows), refused && pgErr.Code == undefinedTable:
		return nil
	}
	return err
}

// undefinedTable is the code of a database that nobody has migrated yet.
const undefinedTable = "42P01"

// MigrationsDigest names the set of migrations, for caches of migrated
// databases.
func MigrationsDigest() string {
	hash := sha256.New()
	names, _ := fs.Glob(migrations, "migrations/*.sql")
	for _, name := range names {
		content, _ := migrations.ReadFile(name)
		fmt.Fprintf(hash, "%s\n%s\n", name, content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}
