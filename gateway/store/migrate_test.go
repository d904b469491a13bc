package store_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
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

// TestMigrateWhatIsThere brings a database with movements of the version before
// the ledger up, and goes on with them.
func TestMigrateWhatIsThere(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, "", nil)
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, os.DirFS("migrations"), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	old := draft("INV/1")
	execute(t, url, fmt.Sprintf(`INSERT INTO movements (merchant_id, mode, kind, reference, id, attempt, operation, provider, state, sequence,
			amount, request, connection_version, provider_reference, fact_id, callback_url, request_id, policy_version, decision_id,
			send_by, created_at, updated_at, misses, due_bucket)
		VALUES ('mer_1', 'live', 'payment', 'INV/1', '%s', 1, '/payments/create', 'payments', 'pending', 2,
			15000, '{}', 1, '', '', '', '', '', '', now(), now(), now(), 0, 0)`, old.ID))
	for range 2 {
		if err := migrate(t.Context(), url); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, url, store.Options{})
	m := byID(t, s, old.ID)
	if m.Charge != movement.Unpaid || m.Cost != 0 || m.Quote != nil || m.ConnectionOwner != manifest.OwnerMerchant || m.ConnectionAccount != "" {
		t.Errorf("%+v", m)
	}
	moved(t, s, move(m, movement.Succeeded))
	insert(t, s, payer.MerchantID)
	credit(t, s, "opening", 2_000)
	claim(t, s, order("ORD/1", movement.Charged))
	wantClean(t, s)
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
