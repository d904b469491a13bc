package store_test

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestARemovalAndAConnectionAtOnce: of the two one is refused, whichever comes second, so
// no account is left without its provider.
func TestARemovalAndAConnectionAtOnce(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	c := newTenant(t).store(t, s).connections[0]
	c.Provider, c.NotifyToken = "coins", "a-route-of-its-own"
	if _, err := s.PutConnection(t.Context(), by("connect"), c); err != nil {
		t.Fatal(err)
	}
	provider := string(c.Provider)
	head := store.PluginHead{Provider: provider, Approval: uuid.New(), Changes: 1, ChangedAt: epoch, ChangedBy: "ops-1", MAC: []byte{1}}
	if err := s.MovePluginHead(t.Context(), by("plugin.activate"), store.PluginHead{}, head); err != nil {
		t.Fatal(err)
	}
	move := func(approval uuid.UUID) error {
		next := head
		next.Approval, next.Changes, next.MAC = approval, head.Changes+1, append([]byte{}, byte(head.Changes+1))
		err := s.MovePluginHead(t.Context(), by("plugin.move"), head, next)
		if err == nil {
			head = next
		}
		return err
	}
	if err := move(uuid.Nil); !errors.Is(err, store.ErrPluginUsed) {
		t.Errorf("removed with an account: %v", err)
	}
	for range 10 {
		pause := tenants.Pause{MerchantID: c.MerchantID, What: tenants.PauseConnection, Provider: c.Provider, Mode: c.Mode, Reason: "to be removed"}
		if err := errors.Join(s.SetPause(t.Context(), by("pause"), pause), s.RemoveConnection(t.Context(), by("disconnect"), c, false)); err != nil {
			t.Fatal(err)
		}
		var removed, connected error
		var both sync.WaitGroup
		both.Go(func() { removed = move(uuid.Nil) })
		both.Go(func() { _, connected = s.PutConnection(t.Context(), by("connect"), c) })
		both.Wait()
		switch {
		case removed == nil && errors.Is(connected, store.ErrPluginRemoved):
		case connected == nil && errors.Is(removed, store.ErrPluginUsed):
			continue
		default:
			t.Fatalf("removed: %v, connected: %v", removed, connected)
		}
		if err := move(uuid.New()); err != nil {
			t.Fatal(err)
		}
		if _, err := s.PutConnection(t.Context(), by("connect"), c); err != nil {
			t.Fatal(err)
		}
	}
}
