package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/gateway/version"
)

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, "", nil)
	var migrators sync.WaitGroup
	for range 4 {
		migrators.Go(func() {
			if err := migrated.Migrate(t.Context(), url); err != nil {
				t.Error(err)
			}
		})
	}
	migrators.Wait()
	files, err := fs.Glob(os.DirFS("migrations"), "*.sql")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	// One row for each time that a migration was applied.
	const applied = "SELECT count(*) FROM goose_db_version WHERE version_id > 0"
	if got := count(t, url, applied); got != len(files) {
		t.Errorf("%d migrations were applied, there are %d", got, len(files))
	}
	if err := migrated.Migrate(t.Context(), url); err != nil {
		t.Errorf("once more: %v", err)
	}
	if got := count(t, url, applied); got != len(files) {
		t.Errorf("once more: %d applied", got)
	}
	s := open(t, url, store.Options{})
	reserve(t, s, draft("INV/1"))
}

// TestMigrateGoesOn takes up a migration that was cut: some of its statements were
// run, and its version was not written down.
func TestMigrateGoesOn(t *testing.T) {
	t.Parallel()
	url := database(t)
	m := reserve(t, open(t, url, store.Options{MaxConns: 2}), draft("INV/1"))
	execute(t, url, "DROP TABLE leases", "DROP INDEX movements_due", "DELETE FROM goose_db_version WHERE version_id > 0")
	if err := migrated.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	s := open(t, url, store.Options{MaxConns: 2})
	if _, err := s.TakeLeases(t.Context(), queue.Lease{Queue: "q", Buckets: []int{1}, Holder: "r"}, epoch, epoch.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	moved(t, s, move(byID(t, s, m.ID), movement.Pending))
	if n := count(t, url, "SELECT count(*) FROM merchants"); n != 1 {
		t.Errorf("%d rows of the platform", n)
	}
}

// TestMigrateRefusesWhatWasNeverReleased leaves a database with a former schema as it
// is, and says what to do.
func TestMigrateRefusesWhatWasNeverReleased(t *testing.T) {
	t.Parallel()
	for _, versions := range tier.Sample(t, [][]int{{1}, {100}, {100, 101, 490}, {100, 499}, {500, 502}}, 2) {
		url := dbtest.New(t, "", nil)
		former(t, url, versions)
		before := everyTable(t, url)
		err := migrated.Migrate(t.Context(), url)
		want := fmt.Sprintf("the database holds version %d of a schema that was never released", versions[0])
		if versions[0] >= 500 {
			want = "the database has the schema 502 without 501, as no release has"
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "use an empty database") {
			t.Errorf("%v: %v", versions, err)
		}
		if after := everyTable(t, url); !slices.Equal(before, after) || len(after) != len(versions)+1 {
			t.Errorf("%v: it has %v, and had %v", versions, after, before)
		}
	}
}

// TestReleasedMigrationsStay: what a release has brought to a database is neither changed nor joined by another one below it, or the
// database could not be upgraded.
func TestReleasedMigrationsStay(t *testing.T) {
	t.Parallel()
	for _, r := range version.Releases() {
		if got := store.MigrationsUpTo(r.Schema); got != r.Migrations {
			t.Errorf("the migrations up to %d of release %s are %s now and were %s: number new ones from %d on", r.Schema, r.Version, got, r.Migrations, store.NewestSchema()+1)
		}
	}
	if store.MigrationsUpTo(500) == store.MigrationsUpTo(501) || store.MigrationsUpTo(store.NewestSchema()) != store.MigrationsDigest() {
		t.Error("the digest is not of all migrations")
	}
}

// former migrates a database to versions of another schema.
func former(t *testing.T, url string, versions []int) {
	t.Helper()
	files := fstest.MapFS{}
	for _, version := range versions {
		files[fmt.Sprintf("%05d_former.sql", version)] = &fstest.MapFile{Data: fmt.Appendf(nil,
			"-- +goose NO TRANSACTION\n-- +goose Up\nCREATE TABLE former_%d AS SELECT %d AS version;\n", version, version)}
	}
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// everyTable is each table of a database with its number of rows.
func everyTable(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rows, err := conn.Query(t.Context(), "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' ORDER BY table_name")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	for i, table := range tables {
		tables[i] = fmt.Sprint(table, ": ", count(t, url, "SELECT count(*) FROM "+table))
	}
	return tables
}

func TestMigrateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrated.Migrate(ctx, database(t)); err == nil {
		t.Error("migrates after the end")
	}
	const secret = "hunter2"
	for _, url := range []string{"postgres://u:" + secret + "@127.0.0.1:x/db", "postgres://u:" + secret + "@[::1/db", "://" + secret} {
		if err := migrated.Migrate(t.Context(), url); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Migrate of a bad URL: %v", err)
		}
		if _, err := store.Open(t.Context(), url, store.Options{}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("Open of a bad URL: %v", err)
		}
	}
}

func TestMigrationsDigest(t *testing.T) {
	t.Parallel()
	if digest := store.MigrationsDigest(); len(digest) != 16 || digest != store.MigrationsDigest() {
		t.Errorf("digest %q", digest)
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	if problem, err := s.Probe(t.Context(), uuid.New(), epoch); problem != "" {
		t.Error(problem, err)
	}
	if got, want := string(s.Engine()), string(dbtest.Engine(t)); got != want {
		t.Errorf("the engine is %s, not %s", got, want)
	}
	if _, err := store.Open(t.Context(), "postgres://127.0.0.1:1/nothing", store.Options{}); !store.Unreachable(err) {
		t.Errorf("opened where nothing listens: %v", err)
	}
	if s.Engine() == store.CockroachDB {
		return // lets a session begin in a database that does not exist
	}
	wrong, err := url.Parse(dbtest.New(t, "", nil))
	if err != nil {
		t.Fatal(err)
	}
	wrong.Path += "_not"
	if _, err := store.Open(t.Context(), wrong.String(), store.Options{}); err == nil || store.Unreachable(err) {
		t.Errorf("opened a database that is none: %v", err)
	}
}
