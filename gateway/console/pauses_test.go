package console_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, id := t.Context(), w.merchant().MerchantID
	if _, err := adminapi.SetConnection.Call(ctx, w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)}); err != nil {
		t.Fatal(err)
	}
	connection := tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live", Reason: "leaked"}
	all := []tenants.Pause{
		connection, {MerchantID: tenants.MerchantID(id), What: "transfers"}, {MerchantID: "platform", What: "provider", Provider: "bank", Mode: "test"},
		{MerchantID: "platform", What: "transfers", Mode: "live"},
	}
	for _, p := range all {
		if set, err := adminapi.SetPause.Call(ctx, w, p); err != nil || set.SetBy != "ayu" || set.SetAt.IsZero() {
			t.Errorf("%+v: %+v, %v", p, set, err)
		}
		if _, err := adminapi.SetPause.Call(ctx, w, p); err != nil { // again
			t.Errorf("%+v again: %v", p, err)
		}
	}
	if listed, err := adminapi.ListPauses.Call(ctx, w, adminapi.None{}); err != nil || len(listed) != len(all) {
		t.Errorf("listed %+v, %v", listed, err)
	}
	shown, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: id})
	if err != nil || len(shown.Pauses) != 2 || len(shown.Connections) != 1 || !shown.Connections[0].Paused {
		t.Errorf("shown %+v, %v", shown, err)
	}
	account, err := w.directory.Account(ctx, tenants.Platform)
	if err != nil {
		t.Fatal(err)
	}
	if _, paused := account.Paused(tenants.PauseProvider, "bank", tenants.Test); !paused {
		t.Error("this replica does not know it at once")
	}
	for _, p := range all {
		if _, err := adminapi.EndPause.Call(ctx, w, p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
		_, err := adminapi.EndPause.Call(ctx, w, p)
		w.refused(err, http.StatusNotFound, "")
	}
	if listed, err := adminapi.ListPauses.Call(ctx, w, adminapi.None{}); err != nil || len(listed) != 0 {
		t.Errorf("listed %+v, %v", listed, err)
	}
	want := []string{
		"ayu merchant.create", "ayu connection.set", "ayu connection.pause", "ayu connection.pause", "ayu transfers.pause", "ayu transfers.pause",
		"ayu connection.resume", "ayu transfers.resume",
	}
	if got := w.actions(id); !slices.Equal(got, want) {
		t.Errorf("audit %q, want %q", got, want)
	}
}

func TestPausesThatNobodyMeant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.merchant().MerchantID
	for name, c := range map[string]struct {
		pause  tenants.Pause
		status int
		field  string
	}{
		"no merchant":               {tenants.Pause{MerchantID: "mer_none", What: "transfers"}, http.StatusNotFound, ""},
		"no connection":             {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live"}, http.StatusNotFound, ""},
		"a connection in no mode":   {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank"}, http.StatusBadRequest, "mode"},
		"no mode of ours":           {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "transfers", Mode: "both"}, http.StatusBadRequest, "mode"},
		"no provider":               {tenants.Pause{MerchantID: "platform", What: "provider", Provider: "none"}, http.StatusNotFound, ""},
		"a provider of a merchant":  {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "provider", Provider: "bank"}, http.StatusBadRequest, "merchant_id"},
		"transfers at one provider": {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "transfers", Provider: "bank"}, http.StatusBadRequest, "provider"},
		"nothing":                   {tenants.Pause{MerchantID: tenants.MerchantID(id), What: "all"}, http.StatusBadRequest, "what"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := adminapi.SetPause.Call(t.Context(), w, c.pause)
			w.refused(err, c.status, c.field)
		})
	}
}

// TestRemovedConnectionIsPausedFirst: and connecting the account again begins without
// a pause.
func TestRemovedConnectionIsPausedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, id := t.Context(), w.merchant().MerchantID
	spec := adminapi.ConnectionSpec{Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)}
	spec.Merchant, spec.Provider = id, "bank"
	if _, err := adminapi.SetConnection.Call(ctx, w, spec); err != nil {
		t.Fatal(err)
	}
	removal := adminapi.ConnectionRemoval{Mode: "live", Reason: "left"}
	removal.Merchant, removal.Provider = id, "bank"
	_, err := adminapi.RemoveConnection.Call(ctx, w, removal)
	w.refused(err, http.StatusBadRequest, "")
	if _, err := adminapi.SetPause.Call(ctx, w, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live"}); err != nil {
		t.Fatal(err)
	}
	_, err = adminapi.RemoveConnection.Call(ctx, w, removal) // other replicas may begin on it still
	w.refused(err, http.StatusBadRequest, "")
	w.ahead.Store(int64(5 * time.Second))
	if _, err := adminapi.SetPause.Call(ctx, w, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live", Reason: "more"}); err != nil {
		t.Fatal(err)
	}
	if left, err := adminapi.RemoveConnection.Call(ctx, w, removal); err != nil || len(left.Connections)+len(left.Pauses) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
	if _, err := adminapi.SetConnection.Call(ctx, w, spec); err != nil {
		t.Fatal(err)
	}
	if shown, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: id}); err != nil || len(shown.Connections) != 1 || shown.Connections[0].Paused {
		t.Errorf("shown %+v, %v", shown, err)
	}
}

// TestConnectionWithOpenMovementsIsKept: nobody could ask the provider about them. Who insists
// removes it.
func TestConnectionWithOpenMovementsIsKept(t *testing.T) {
	t.Parallel()
	w := overriding(t)
	ctx := t.Context()
	open := w.transfers(time.Hour, func(m *movement.Movement) { m.Provider = "bank" })
	id := open.Owner.MerchantID
	w.transfers(time.Hour, func(m *movement.Movement) { m.Owner.MerchantID, m.Owner.Mode, m.Provider = id, "test", "bank" })
	w.transfers(time.Hour, func(m *movement.Movement) { m.Owner.MerchantID, m.Reference = id, "PAY/2" }) // at another provider
	w.transfers(time.Hour, func(m *movement.Movement) { m.Provider = "bank" })                           // of another merchant
	ended := w.transfers(time.Hour, func(m *movement.Movement) { m.Owner.MerchantID, m.Reference, m.Provider = id, "PAY/3", "bank" })
	ended, err := w.store.MovementByID(ctx, ended.ID)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := w.store.Apply(ctx, movement.Change{Movement: ended, At: time.Now(), Transition: movement.Transition{
		Effect: movement.Move, From: []movement.State{movement.Pending}, To: movement.Succeeded, Event: "succeeded", Detail: `{}`,
	}}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := adminapi.SetConnection.Call(ctx, w, adminapi.ConnectionSpec{Merchant: id, Provider: "bank", Mode: "live", Credentials: []byte(`{"api_key":"k-secret"}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := adminapi.SetPause.Call(ctx, w, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "connection", Provider: "bank", Mode: "live", Reason: "left"}); err != nil {
		t.Fatal(err)
	}
	w.ahead.Store(int64(5 * time.Second))
	removal := adminapi.ConnectionRemoval{Mode: "live", Reason: "left"}
	removal.Merchant, removal.Provider = id, "bank"
	_, err = adminapi.RemoveConnection.Call(ctx, w, removal)
	if f := w.refused(err, http.StatusBadRequest, "leave_open"); !strings.Contains(f.Error(), "1 movements are open") || !strings.Contains(f.Error(), "--leave-open") {
		t.Errorf("told %v", f)
	}
	if shown, err := adminapi.ShowMerchant.Call(ctx, w, adminapi.MerchantID{Merchant: id}); err != nil || len(shown.Connections) != 1 {
		t.Errorf("shown %+v, %v", shown, err)
	}
	removal.LeaveOpen = true
	if left, err := adminapi.RemoveConnection.Call(ctx, w, removal); err != nil || len(left.Connections) != 0 {
		t.Errorf("left %+v, %v", left, err)
	}
}

// TestResumeSaysWhatStillPauses: an operator must not believe that something goes on
// which another pause holds.
func TestResumeSaysWhatStillPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, id := t.Context(), w.merchant().MerchantID
	everybody, own := tenants.Pause{MerchantID: "platform", What: "transfers"}, tenants.Pause{MerchantID: tenants.MerchantID(id), What: "transfers", Mode: "live"}
	both := tenants.Pause{MerchantID: tenants.MerchantID(id), What: "transfers"}
	for _, p := range []tenants.Pause{everybody, own, both, {MerchantID: "platform", What: "provider", Provider: "bank"}} {
		if _, err := adminapi.SetPause.Call(ctx, w, p); err != nil {
			t.Fatal(err)
		}
	}
	ended, err := adminapi.EndPause.Call(ctx, w, own)
	if err != nil || len(ended.Still) != 2 || ended.Still[0].MerchantID != tenants.MerchantID(id) || ended.Still[0].Mode != "" || ended.Still[1].MerchantID != "platform" {
		t.Errorf("ended %+v, %v; want those of both modes and of everybody", ended, err)
	}
	if ended, err = adminapi.EndPause.Call(ctx, w, both); err != nil || len(ended.Still) != 1 {
		t.Errorf("ended %+v, %v; want that of everybody", ended, err)
	}
	if ended, err = adminapi.EndPause.Call(ctx, w, everybody); err != nil || len(ended.Still) != 0 {
		t.Errorf("ended %+v, %v", ended, err)
	}
}

// TestProviderWithoutItsPluginIsPaused: it may be the very one that must not be used once
// it comes up.
func TestProviderWithoutItsPluginIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.plugins.mu.Lock()
	w.plugins.status.Provider = "late"
	w.plugins.mu.Unlock()
	if _, err := adminapi.SetPause.Call(t.Context(), w, tenants.Pause{MerchantID: "platform", What: "provider", Provider: "late"}); err != nil {
		t.Error(err)
	}
}
