package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestMain makes the test binary the process that judges policies, too.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == judge.Command {
		if err := judge.Main(os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	dbtest.Main(m)
}

func vaultOf(t *testing.T, file string) *tenants.Vault {
	t.Helper()
	vault, err := tenants.OpenKeysetFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return vault
}

func keysetFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keyset.json")
	if err := tenants.CreateKeysetFile(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestNameKeyOfAnInstallation: the first start makes it, every other reads it, also
// under a rotated keyset; nothing starts with another keyset, or where it is gone.
func TestNameKeyOfAnInstallation(t *testing.T) {
	t.Parallel()
	url := migrated.Database(t)
	s := migrated.Open(t, url, store.Options{MaxConns: 4})
	file := keysetFile(t)
	keys := make([]movement.NameKey, 4)
	var replicas sync.WaitGroup
	for i := range keys {
		vault := vaultOf(t, file)
		replicas.Go(func() {
			var err error
			if keys[i], err = readNameKey(t.Context(), s, vault, time.Now()); err != nil {
				t.Error(err)
			}
		})
	}
	replicas.Wait()
	if keys[0] == (movement.NameKey{}) {
		t.Error("nothing was drawn")
	}
	if err := tenants.EditKeysetFile(file, func(k *tenants.Keyset) error { _, err := k.Rotate(); return err }); err != nil {
		t.Fatal(err)
	}
	later, err := readNameKey(t.Context(), s, vaultOf(t, file), time.Now())
	for i, key := range keys {
		if key != later || err != nil {
			t.Errorf("replica %d has another key than a later one: %v", i, err)
		}
	}
	_, err = readNameKey(t.Context(), s, vaultOf(t, keysetFile(t)), time.Now())
	if err == nil || !strings.Contains(err.Error(), "start with the keyset that this database was used with") {
		t.Errorf("with another keyset: %v", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "DELETE FROM installation"); err != nil {
		t.Fatal(err)
	}
	_, err = readNameKey(t.Context(), s, vaultOf(t, file), time.Now())
	if err == nil || !strings.Contains(err.Error(), "restore the table installation from a backup") {
		t.Errorf("gone, and: %v", err)
	}
}

// TestNothingIsWrittenUnderAnotherKeyset: a start with a keyset that is not the database's
// neither migrates it nor leaves anything in it.
func TestNothingIsWrittenUnderAnotherKeyset(t *testing.T) {
	t.Parallel()
	url := migrated.Database(t)
	s := migrated.Open(t, url, store.Options{MaxConns: 4})
	if _, err := readNameKey(t.Context(), s, vaultOf(t, keysetFile(t)), time.Now()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "DELETE FROM goose_db_version WHERE version_id = (SELECT max(version_id) FROM goose_db_version)"); err != nil {
		t.Fatal(err)
	}
	const written = "SELECT (SELECT count(*) FROM goose_db_version) + (SELECT count(*) FROM policy_versions) + (SELECT count(*) FROM exceptions) + (SELECT count(*) FROM audit)"
	var before, after int
	if err := conn.QueryRow(t.Context(), written).Scan(&before); err != nil {
		t.Fatal(err)
	}
	config := Defaults()
	config.Listen, config.Console, config.DatabaseURL, config.KeysetFile = "127.0.0.1:0", "127.0.0.1:0", url, keysetFile(t)
	_, err = New(t.Context(), config, slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "start with the keyset that this database was used with") {
		t.Errorf("with another keyset: %v", err)
	}
	if err := conn.QueryRow(t.Context(), written).Scan(&after); err != nil || after != before {
		t.Errorf("%d rows were written, %v", after-before, err)
	}
}
