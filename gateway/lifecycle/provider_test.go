package lifecycle

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// unasked are accounts that nobody may open.
type unasked struct{ t *testing.T }

func (u unasked) Account(context.Context, tenants.MerchantID) (*tenants.Account, error) {
	u.t.Error("an account was opened")
	return nil, tenants.ErrNotFound
}

func (u unasked) ByNotifyToken(context.Context, time.Time, tenants.Provider, tenants.NotifyToken) (*tenants.Account, tenants.Connection, error) {
	u.t.Error("an account was opened")
	return nil, tenants.Connection{}, tenants.ErrNotFound
}

// TestAnotherProviderIsNotAsked: where another provider has taken over the path that made
// a movement, no account is opened for it, and what is said is not judged by that
// provider's operation. It can still be shown.
func TestAnotherProviderIsNotAsked(t *testing.T) {
	t.Parallel()
	op := telling(t)
	l := New(Dependencies{Accounts: unasked{t}, Catalog: catalog.New(snapshotOf(t)), Log: slog.New(slog.DiscardHandler)})
	for _, owner := range []manifest.Owner{manifest.OwnerMerchant, manifest.OwnerPlatform} {
		m := movement.Movement{
			ID: movement.NewID(), Key: movement.Key{Owner: movement.Owner{MerchantID: "m", Mode: "live"}},
			Provider: "gone", Operation: op.Path, ConnectionOwner: owner,
		}
		if _, err := l.Reconnect(t.Context(), op, m); fault.From(err).Code != fault.ProviderUnavailable {
			t.Errorf("connected to %s's account: %v", owner, err)
		}
		if _, err := l.look(t.Context(), op, m); err == nil {
			t.Error("it was looked for")
		}
		if _, err := l.Operation(m); err == nil || !strings.Contains(err.Error(), "at provider gone") {
			t.Errorf("its operation: %v", err)
		}
		if shown, err := l.Shown(m); err != nil || shown.Path != op.Path {
			t.Errorf("shown by %v, %v", shown, err)
		}
	}
}
