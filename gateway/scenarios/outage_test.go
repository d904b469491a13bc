package scenarios

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// outages are the breakers that are not closed, as a host tells.
type outages struct {
	mu   sync.Mutex
	open []host.Outage
}

func (o *outages) set(open ...host.Outage) { o.mu.Lock(); defer o.mu.Unlock(); o.open = open }

func (o *outages) get() []host.Outage { o.mu.Lock(); defer o.mu.Unlock(); return o.open }

// TestOutageIsListedOnceAndEnds: an open breaker is one exception that names the
// account, however often it opens, and ends when it has been closed for a while.
func TestOutageIsListedOnceAndEnds(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		var up outages
		bad := host.Outage{Provider: provider, Mode: "live", Account: string(w.account.ID()), Since: w.now(), Why: "connection refused"}
		stop := w.lists(&up)
		for range 20 { // it opens and closes for five minutes
			up.set(bad)
			w.pass(5 * time.Second)
			up.set()
			w.pass(10 * time.Second)
		}
		w.wantListed(movement.ReasonOutage)
		listed := w.open()[0]
		if listed.Owner.MerchantID != string(w.account.ID()) || listed.Owner.Mode != "live" || listed.Subject != "connection to "+provider ||
			!strings.Contains(listed.Detail, "connection refused") {
			t.Errorf("listed %+v", listed)
		}
		w.pass(2 * time.Minute)
		w.wantListed()
		up.set(bad)
		w.pass(5 * time.Second)
		w.wantListed(movement.ReasonOutage)

		// An operator resolves it while it goes on.
		listed = w.open()[0]
		if err := w.keeper.ResolveException(w.Context(), w.now(), listed, "ops", "seen"); err != nil {
			t.Fatal(err)
		}
		w.pass(2 * time.Minute)
		w.wantListed(movement.ReasonOutage)

		// The replica that listed it ends, and another begins after it is over.
		stop()
		up.set()
		defer w.lists(&up)()
		w.pass(2 * time.Minute)
		w.wantListed()
	})
}

func TestOutageOfTheProvider(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		var up outages
		up.set(host.Outage{Provider: provider, Mode: "test", Since: w.now()}, host.Outage{Provider: provider, Mode: "test", Account: "platform", Since: w.now()})
		defer w.lists(&up)()
		w.pass(5 * time.Second)
		if n := len(w.open()); n != 2 {
			t.Errorf("%d exceptions, want that of the provider and that of the account which all use", n)
		}
		for _, x := range w.open() {
			if x.Owner.MerchantID != "platform" || x.Subject != "provider "+provider && x.Subject != "connection to "+provider {
				t.Errorf("listed %+v", x)
			}
		}
	})
}

// lists runs a replica's listing of outages until it is stopped.
func (w *world) lists(up *outages) (stop func()) {
	ctx, cancel := context.WithCancel(w.Context())
	ended := make(chan error)
	list := w.keeper.(lifecycle.OutageList) //nolint:forcetypeassert // every store is one
	go func() { ended <- lifecycle.NewOutages(w.Lifecycle, up.get, list).Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			w.Error(err)
		}
	}
}

func (w *world) open() []movement.Exception {
	w.Helper()
	open, err := w.keeper.OpenExceptions(w.Context(), 100)
	if err != nil {
		w.Fatal(err)
	}
	return open
}
