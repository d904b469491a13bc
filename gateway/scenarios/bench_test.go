package scenarios

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// nowhere forgets at once, so that a benchmark counts the engine's own work.
type nowhere struct{ keeper }

func (nowhere) Reserve(_ context.Context, m movement.Movement) (movement.Movement, bool, error) {
	m.Attempt = 1
	return m, true, nil
}

func (nowhere) Apply(context.Context, movement.Change) (bool, error) { return true, nil }

// instant is a plugin that answers at once.
type instant struct{ *upstream }

func (instant) Available(host.Use, sdk.Connection) error { return nil }

func (instant) Call(context.Context, host.Use, sdk.Call, time.Duration) sdk.Result {
	return sdk.Result{Outcome: sdk.Pending, Data: []byte(`{"payment_url":"https://pay.example/1"}`), ProviderReference: "up-1"}
}

// BenchmarkCreate is the engine's own CPU cost of one payment: everything but
// the two commits and the plugin.
func BenchmarkCreate(b *testing.B) {
	w := &world{clock: handClock(), account: newAccount(tenants.NewMerchantID(), provider, "{}", 1), of: payments, catalog: payments.catalog(), path: createPath}
	engine := New(Dependencies{
		Store: nowhere{}, Transfers: nowhere{}, Providers: instant{}, Accounts: w, Vault: openVault{}, Catalog: w.catalog, Now: w.now,
		Log: slog.New(slog.DiscardHandler),
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := engine.Run(b.Context(), w.request("INV-"+strconv.Itoa(i))); err != nil {
			b.Fatal(err)
		}
	}
}
