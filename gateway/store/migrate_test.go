package store_test

import (
	"context"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestMigrateAtOnce(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, "", nil)
	var migrators sync.WaitGroup
	for range 4 {
		migrators.Go(func() {
			if err := migrate(t.Context(), url); err != nil {
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
	if err := migrate(t.Context(), url); err != nil {
		t.Errorf("once more: %v", err)
	}
	if got := count(t, url, applied); got != len(files) {
		t.Errorf("once more: %d applied", got)
	}
	s := open(t, url, store.Options{})
	claim(t, s, draft("INV/1"))
}

func TestMigrateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := migrate(ctx, database(t)); err == nil {
		t.Error("migrates after the end")
	}
	const secret = "hunter2"
	for _, url := range []string{"postgres://u:" + secret + "@127.0.0.1:x/db", "postgres://u:" + secret + "@[::1/db", "://" + secret} {
		if err := migrate(t.Context(), url); err == nil || strings.Contains(err.Error(), secret) {
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
	if err := s.Ping(t.Context()); err != nil {
		t.Error(err)
	}
	if got, want := string(s.Engine()), string(dbtest.Engine(t)); got != want {
		t.Errorf("the engine is %s, not %s", got, want)
	}
	if _, err := store.Open(t.Context(), "postgres://127.0.0.1:1/nothing", store.Options{}); err == nil {
		t.Error("opened where nothing listens")
	}
}
