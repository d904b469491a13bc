package policy_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// inside is a program's database, and the program's keys.
type inside struct {
	store *store.Store
	vault *tenants.Vault
	conn  *pgx.Conn
	key   decision.Key
}

// lookInside opens the database of programs whose keyset is in a directory.
func lookInside(t *testing.T, databaseURL, dir string) (in inside) {
	t.Helper()
	var err error
	if in.store, err = store.Open(t.Context(), databaseURL, store.Options{MaxConns: 2}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(in.store.Close)
	if in.vault, err = tenants.OpenKeysetFile(filepath.Join(dir, "keyset.json")); err != nil {
		t.Fatal(err)
	}
	sealed, err := in.store.NameKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := in.vault.OpenNameKey(sealed)
	if err != nil {
		t.Fatal(err)
	}
	names, err := movement.ReadNameKey(raw)
	if err != nil {
		t.Fatal(err)
	}
	in.key = decision.NewKey(names[:])
	if in.conn, err = pgx.Connect(t.Context(), databaseURL); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.conn.Close(context.WithoutCancel(t.Context())) })
	return in
}
