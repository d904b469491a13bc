package scenarios

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// pausing makes an account anew with something paused, that of the platform where it
// is nil.
func (w *world) pausing(account *tenants.Account, pauses ...tenants.Pause) *tenants.Account {
	w.Helper()
	merchant, connections := tenants.Merchant{ID: tenants.Platform, Status: tenants.Active}, []tenants.Connection(nil)
	if account != nil {
		merchant, connections = account.Merchant(), account.Connections()
	}
	merchant.Pauses = pauses
	paused, err := tenants.NewAccount(merchant, nil, connections, nil)
	if err != nil {
		w.Fatal(err)
	}
	w.others[merchant.ID] = paused
	return paused
}

// TestPausedIsForWhatIsNew: what has begun goes on, and what is paused elsewhere
// changes nothing here.
func TestPausedIsForWhatIsNew(t *testing.T) {
	t.Parallel()
	inMemory(t, payments, func(w *world) {
		w.want(w.create("A"), "PENDING")
		w.pausing(nil, tenants.Pause{What: tenants.PauseProvider, Provider: provider, Mode: tenants.Test},
			tenants.Pause{What: tenants.PauseProvider, Provider: "another"}, tenants.Pause{What: tenants.PauseTransfers},
			tenants.Pause{What: tenants.PauseConnection, Provider: provider, Mode: tenants.Live})
		w.want(w.create("B"), "PENDING")

		w.pausing(nil, tenants.Pause{What: tenants.PauseProvider, Provider: provider})
		w.want(w.create("C"), "PROVIDER_UNAVAILABLE no later")
		w.want(w.status("A"), "PENDING")
		w.want(w.cancel("A"), "EXPIRED")
		looked := w.up.asked()
		w.work("B", 2*time.Minute)
		if w.up.asked() == looked {
			t.Error("nobody polled while the provider was paused")
		}
		w.pausing(nil)
		w.want(w.create("C"), "PENDING")
	})
}

func TestTransfersPaused(t *testing.T) {
	t.Parallel()
	for name, pause := range map[string]func(*world, ...tenants.Pause){
		"of the merchant": func(w *world, pauses ...tenants.Pause) { w.account = w.pausing(w.account, pauses...) },
		"of all":          func(w *world, pauses ...tenants.Pause) { w.pausing(nil, pauses...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMemory(t, transfers, func(w *world) {
				first := w.create("A")
				pause(w, tenants.Pause{What: tenants.PauseTransfers, Mode: tenants.Live, Reason: "fraud", SetBy: "ops"})
				if again := w.create("A"); again.data != first.data {
					t.Errorf("what exists is answered %s, %v", again.data, again.err)
				}
				w.wantFault(w.create("B"), fault.ProviderUnavailable, fault.SentNo)
				if s := w.statusBy("external_id", "A"); s.err != nil {
					t.Errorf("a status: %v", s.err)
				}
				pause(w)
				if s := w.create("B"); s.err != nil {
					t.Errorf("resumed: %v", s.err)
				}
			})
		})
	}
}
