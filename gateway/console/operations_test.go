package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

func TestExceptionsAreListedAndResolved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := movement.Exception{
		Owner: movement.Owner{MerchantID: "mer_1", Mode: "live"}, Subject: "inv-1", Reason: "amount_differs", FactID: "evt-1",
		Provider: "bank", Detail: "paid 5, asked 7", At: time.Now(),
	}
	if _, err := w.store.AddException(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	open, err := adminapi.ListExceptions.Call(t.Context(), w, adminapi.ExceptionFilter{Limit: adminapi.MostListed})
	if err != nil || len(open) != 1 || open[0].Subject != "inv-1" || open[0].Detail != "paid 5, asked 7" || open[0].Provider != "bank" {
		t.Fatalf("open %+v, %v", open, err)
	}
	if again, err := adminapi.ListExceptions.Call(t.Context(), w, adminapi.ExceptionFilter{Limit: adminapi.MostListed}); err != nil || len(open[0].ID) != 12 || again[0].ID != open[0].ID {
		t.Errorf("the id is %q, and then %+v, %v", open[0].ID, again, err)
	}
	if _, _, text := w.send(http.MethodGet, "/metrics", "", ""); !strings.Contains(text, "gerbang_exceptions_open{reason=\"amount_differs\"} 1\n") {
		t.Error("it is not in the metrics")
	}
	r := adminapi.Resolution{MerchantID: "mer_1", Mode: "live", Subject: "inv-1", Reason: "amount_differs", FactID: "evt-1"}
	w.refused(failed(adminapi.ResolveException.Call(t.Context(), w, r)), http.StatusBadRequest, "resolution")
	other := r
	other.FactID, other.Resolution = "evt-2", "refunded"
	w.refused(failed(adminapi.ResolveException.Call(t.Context(), w, other)), http.StatusNotFound, "")
	r.Resolution = "refunded"
	if _, err := adminapi.ResolveException.Call(t.Context(), w, r); err != nil {
		t.Fatal(err)
	}
	if open, err = adminapi.ListExceptions.Call(t.Context(), w, adminapi.ExceptionFilter{Limit: adminapi.MostListed}); err != nil || len(open) != 0 {
		t.Errorf("still open %+v, %v", open, err)
	}
	w.refused(failed(adminapi.ResolveException.Call(t.Context(), w, r)), http.StatusNotFound, "")
}

func TestPluginsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	plugins, err := adminapi.ListPlugins.Call(t.Context(), w, adminapi.None{})
	if err != nil || len(plugins) != 1 {
		t.Fatalf("plugins %+v, %v", plugins, err)
	}
	p := plugins[0]
	if p.Provider != "bank" || p.Owner != "merchant" || p.Version != "1.2.3" || p.SHA256 != "ab12" || p.ManifestDigest != w.plugins.manifest.Digest() ||
		!p.Running || p.PID != 7 || p.Restarts != 3 || p.InFlight != 2 || len(p.Breakers) != 1 || p.Breakers[0].Calls != "open" {
		t.Errorf("shown %+v", p)
	}
}

func TestAMovementIsShownWithItsHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := time.Now()
	claimed, ok, err := w.store.Reserve(t.Context(), movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: "mer_1", Mode: "test"}, Kind: "payment", Reference: "order-1"},
		ID:  movement.NewID(), Operation: "/payments/create", Provider: "bank", Amount: 25000,
		Request:     json.RawMessage(`{"body":{"amount":25000},"path":"/payments/create"}`),
		CallbackURL: "https://merchant.example/cb?token=hidden", RequestID: "req-1", SendBy: now.Add(time.Second), CreatedAt: now,
		Polled: movement.Polled{DueAt: now},
	})
	if err != nil || !ok {
		t.Fatalf("claim: %t, %v", ok, err)
	}
	if moved, err := w.store.Apply(t.Context(), movement.Change{Movement: claimed, At: now, Transition: movement.Transition{
		Effect: movement.Move, From: []movement.State{movement.Submitting}, To: movement.Pending,
		Event: "accepted", Detail: `{"by":"bank"}`, ProviderReference: "inv-1",
	}}); err != nil || !moved {
		t.Fatalf("move: %t, %v", moved, err)
	}
	shown, err := adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: claimed.ID.String()})
	if err != nil {
		t.Fatal(err)
	}
	if shown.MerchantID != "mer_1" || shown.Mode != "test" || shown.Reference != "order-1" || shown.State != "pending" || shown.Amount != 25000 ||
		shown.ProviderReference != "inv-1" || shown.UpstreamReference == "" || shown.SendBy == nil || shown.PaidLateAt != nil {
		t.Errorf("shown %+v", shown)
	}
	if n := len(shown.History); n == 0 || shown.History[n-1].Event != "accepted" || shown.History[n-1].Detail != `{"by":"bank"}` {
		t.Errorf("history %+v", shown.History)
	}
	if strings.Contains(mustJSON(t, shown), "hidden") {
		t.Error("the callback URL is shown")
	}
	for _, id := range []string{"x", movement.NewID().String()} {
		_, err := adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: id})
		w.refused(err, http.StatusNotFound, "")
	}
}

// TestReadsAreLogged: who reads what, without what was searched for.
func TestReadsAreLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if _, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: "Siti-0812"}); err != nil {
		t.Fatal(err)
	}
	merchant := w.merchant().MerchantID // made by a POST
	if _, err := adminapi.ShowBalance.Call(t.Context(), w, adminapi.BalanceQuery{Merchant: merchant, Mode: "live"}); err != nil {
		t.Fatal(err)
	}
	var reads []string
	for line := range strings.Lines(w.logs.String()) {
		if strings.Contains(line, "an operator reads") {
			reads = append(reads, line)
		}
	}
	if len(reads) != 2 || !strings.Contains(reads[0], "operator=ayu") || !strings.Contains(reads[0], "path=/admin/find\n") ||
		!strings.Contains(reads[1], "path=/admin/merchants/"+merchant+"/balance\n") {
		t.Errorf("logged %q", reads)
	}
	if log := w.logs.String(); strings.Contains(log, "Siti") || strings.Contains(log, token) {
		t.Errorf("logged %s", log)
	}
}
