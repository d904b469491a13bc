package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestRecovery: it begins once however many begin it, knows the last trace of a gateway
// before it, and is ended by an operator with an audit entry.
func TestRecovery(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 4})
	want := func(want *store.Recovery) {
		t.Helper()
		got, err := s.LastRecovery(t.Context())
		if err != nil || (got == nil) != (want == nil) || got != nil && *got != *want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
	}
	begin := func(at time.Time) {
		t.Helper()
		if err := s.BeginRecovery(t.Context(), at); err != nil {
			t.Fatal(err)
		}
	}
	sees := func(replica uuid.UUID, at time.Time) {
		t.Helper()
		if _, err := s.Probe(t.Context(), replica, at); err != nil {
			t.Fatal(err)
		}
	}
	end := store.Audit{Operator: "ayu", Action: "recovery.open", At: epoch.Add(time.Hour)}
	want(nil)
	if err := s.EndRecovery(t.Context(), end); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("ended without a beginning: %v", err)
	}
	begin(epoch)
	want(&store.Recovery{Begun: epoch})
	if err := s.EndRecovery(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	want(&store.Recovery{Begun: epoch, Opened: epoch.Add(time.Hour)})
	before := uuid.New()
	sees(before, epoch.Add(-time.Hour))
	begin(epoch.Add(-30 * time.Minute))
	want(&store.Recovery{Begun: epoch.Add(-30 * time.Minute), Since: epoch.Add(-time.Hour)}) // it has begun within that hour, and is all there is
	if err := s.EndRecovery(t.Context(), end); err != nil {
		t.Fatal(err)
	}
	sees(before, epoch.Add(-time.Minute))
	sees(uuid.New(), epoch.Add(2*time.Hour-time.Second)) // that somebody has just started on it
	begin(epoch.Add(2 * time.Hour))
	begin(epoch.Add(3 * time.Hour))
	want(&store.Recovery{Begun: epoch.Add(2 * time.Hour), Since: epoch.Add(-time.Minute)})
	entries, err := s.AuditOf(t.Context(), store.AuditRange{MerchantID: tenants.Platform, Most: 10})
	if err != nil || len(entries) != 2 || entries[0].Action != "recovery.open" || entries[0].Operator != "ayu" {
		t.Errorf("audit %+v, %v", entries, err)
	}
}
