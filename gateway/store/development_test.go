package store_test

import (
	"errors"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/migrated"
)

// TestMarkDevelopment: an empty database is marked and is from then on known; one that
// somebody else has migrated is refused and stays as it is; one that has a merchant of a
// data directory from before the mark is marked, too.
func TestMarkDevelopment(t *testing.T) {
	t.Parallel()
	const marks = "SELECT count(*) FROM pg_catalog.pg_tables WHERE tablename = 'gerbang_dev'"
	empty := dbtest.New(t, "", nil)
	for range 2 {
		if err := store.MarkDevelopment(t.Context(), empty, nil); err != nil {
			t.Fatal(err)
		}
		if err := migrated.Migrate(t.Context(), empty); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, empty, "SELECT count(*) FROM gerbang_dev"); n != 1 {
		t.Errorf("%d marks", n)
	}
	foreign := database(t)
	for _, merchants := range [][]string{nil, {"mer_of_elsewhere"}} {
		if err := store.MarkDevelopment(t.Context(), foreign, merchants); !errors.Is(err, store.ErrNotDevelopment) {
			t.Errorf("a database of another gateway: %v", err)
		}
	}
	if n := count(t, foreign, marks); n != 0 {
		t.Error("a database of another gateway was marked")
	}
	other := dbtest.New(t, "", nil)
	execute(t, other, "CREATE TABLE tickets (id TEXT)")
	if err := store.MarkDevelopment(t.Context(), other, nil); !errors.Is(err, store.ErrNotDevelopment) {
		t.Errorf("a database of another program: %v", err)
	}
	execute(t, foreign, "INSERT INTO merchants (merchant_id, name, tier, status, labels, version, created_at, changed_at, change_shard) VALUES ('mer_demo', 'x', 'scale', 'active', '{}', 1, now(), now(), 0)")
	if err := store.MarkDevelopment(t.Context(), foreign, []string{"mer_demo"}); err != nil || count(t, foreign, marks) != 1 {
		t.Errorf("a database of before the mark: %v", err)
	}
}
