package console_test

import (
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// moving is the catalog of the wallets' own manifests.
var moving = sync.OnceValues(func() (*catalog.Catalog, error) {
	var all []*manifest.Manifest
	for _, plugin := range []string{"wallet1", "wallet2"} {
		document, err := os.ReadFile("../../plugins/" + plugin + "/manifest.json")
		if err != nil {
			return nil, err
		}
		parsed, err := manifest.Parse(document)
		if err != nil {
			return nil, err
		}
		all = append(all, parsed)
	}
	snapshot, err := catalog.Build(all)
	return catalog.New(snapshot), err
})

// overriding is a console over a real engine, which has no providers.
func overriding(t *testing.T, changes ...func(*console.Config, *console.Dependencies)) *world {
	t.Helper()
	offered, err := moving()
	if err != nil {
		t.Fatal(err)
	}
	var l *lifecycle.Lifecycle
	w := withPolicy(t, append(changes, func(_ *console.Config, d *console.Dependencies) {
		s, ok := d.Movements.(*store.Store)
		if !ok {
			t.Fatal("the movements are not the store's")
		}
		l = lifecycle.New(lifecycle.Dependencies{Store: s, Catalog: offered, Now: d.Now, Log: d.Log})
		kind.AddOrder(l, nil)
		kind.AddTransfer(l, s, nil)
		reconciler := reconcile.New(l, nil, s, s)
		kind.AddCollection(l, reconciler)
		d.Override, d.Assign = override.New(l, s).Override, reconciler.Assign
	})...)
	l.Accounts = w.directory
	return w
}

// transfers claims a transfer of a new merchant and brings it to pending; change is
// made to its draft.
func (w *world) transfers(age time.Duration, change func(*movement.Movement)) movement.Movement {
	w.Helper()
	at := time.Now().Add(-age)
	m := movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: w.merchant().MerchantID, Mode: "live"}, Kind: manifest.Transfer, Reference: "PAY/1"},
		ID:  movement.NewID(), Operation: "/wallet1/transfer/bank", Provider: "wallet1", Amount: 50_000, Request: json.RawMessage(`{"body":{"account_no":"123","amount":50000},"path":"/wallet1/transfer/bank"}`),
		Quote:     json.RawMessage(`{"session":"s-1"}`),
		RequestID: uuid.Must(uuid.NewV7()).String(), DecisionID: uuid.Must(uuid.NewV7()).String(), PolicyVersion: "p-1",
		ConnectionOwner: manifest.OwnerMerchant, ConnectionVersion: 3, CallbackURL: "https://shop.example/cb?token=hidden",
		SendBy: at.Add(5 * time.Second), CreatedAt: at,
		Polled: movement.Polled{DueAt: at}, Payout: movement.Payout{Fee: 2_500, NameMatch: new(true)},
	}
	if change != nil {
		change(&m)
	}
	claimed, ok, err := w.store.Reserve(w.Context(), m)
	if err != nil || !ok {
		w.Fatalf("claim: %t, %v", ok, err)
	}
	if ok, err := w.store.Apply(w.Context(), movement.Change{Movement: claimed, At: at.Add(time.Second), Transition: movement.Transition{
		Effect: movement.Move, From: []movement.State{movement.Submitting}, To: movement.Pending,
		Event: "pending", Detail: `{"source":"call"}`, ProviderReference: "prov-" + strings.Trim(m.Reference, "\x1eabc/-1"),
	}}); err != nil || !ok {
		w.Fatalf("move: %t, %v", ok, err)
	}
	return claimed
}

func TestTwoOperatorsOverrideATransfer(t *testing.T) {
	t.Parallel()
	w := overriding(t)
	m := w.transfers(25*time.Hour, nil)
	other := adminapi.NewClient(w.url, otherToken)

	first, err := w.Override(t.Context(), m.ID.Compact(), adminapi.NewOverride{As: "success", Reason: "seen in their portal"})
	if err != nil || !first.Waiting || first.State != "pending" || first.Override.Operator != "ayu" || first.Reference != "PAY/1" {
		t.Fatalf("proposed: %+v, %v", first, err)
	}
	_, err = other.Override(t.Context(), m.ID.String(), adminapi.NewOverride{As: "failed", Reason: "no"})
	w.refused(err, http.StatusConflict, "")
	second, err := other.Override(t.Context(), m.UpstreamReference(), adminapi.NewOverride{As: "success", Reason: "called them"})
	if err != nil || second.Waiting || second.State != "succeeded" || second.Override.ConfirmedBy != "budi" {
		t.Fatalf("confirmed: %+v, %v", second, err)
	}
	if err := w.store.Note(t.Context(), time.Now(), m, "polled", `{"said":"pending"}`); err != nil {
		t.Fatal(err)
	}

	shown, err := w.Movement(t.Context(), m.ID.Compact())
	if err != nil {
		t.Fatal(err)
	}
	last := shown.History[len(shown.History)-1]
	if shown.State != "succeeded" || last.Event != "overridden" || !strings.Contains(last.Detail, `"ayu, budi"`) || !strings.Contains(last.Detail, "called them") {
		t.Errorf("the history ends with %+v", last)
	}
	if shown.Fee != 2500 || shown.NameMatch == nil || !*shown.NameMatch || shown.ConnectionVersion != 3 || shown.ConnectionOwner != "merchant" ||
		string(shown.Quote) != `{"session":"s-1"}` || shown.PolicyVersion != "p-1" || shown.RequestID != m.RequestID || len(shown.Request) == 0 {
		t.Errorf("shown %+v", shown)
	}
	if len(shown.Overrides) != 1 || shown.Overrides[0].ConfirmedReason != "called them" || len(shown.Notes) != 1 || shown.Notes[0].Times != 1 {
		t.Errorf("decided %+v, said %+v", shown.Overrides, shown.Notes)
	}
	if len(shown.Callbacks) != 1 || shown.Callbacks[0].Event != "transfer.status_update" || shown.Callbacks[0].URL != "https://shop.example/cb?token=…" {
		t.Errorf("told %+v", shown.Callbacks)
	}
	if strings.Contains(mustJSON(t, shown), "hidden") {
		t.Error("the callback URL is shown")
	}
	if did := w.actions(m.Owner.MerchantID); !slices.Equal(did[len(did)-2:], []string{"ayu movement.propose", "budi movement.confirm"}) {
		t.Errorf("audited %q", did)
	}
}

func TestOneOperatorOverridesAlone(t *testing.T) {
	t.Parallel()
	w := overriding(t)
	m := w.transfers(25*time.Hour, func(m *movement.Movement) { m.Reference, m.Fingerprint = "\x1exyz-1", "\x1exyz-" })
	s, err := w.Override(t.Context(), m.ID.String(), adminapi.NewOverride{As: "failed", Reason: "bounced", Alone: true})
	if err != nil || s.Waiting || s.State != "failed" || !s.Override.Alone {
		t.Fatalf("%+v, %v", s, err)
	}
	shown, err := w.Movement(t.Context(), m.ID.String())
	if err != nil || len(shown.Exceptions) != 1 || shown.Exceptions[0].Reason != "overridden_alone" || shown.Exceptions[0].ResolvedAt != nil {
		t.Errorf("for review: %+v, %v", shown.Exceptions, err)
	}
	found, err := w.Find(t.Context(), m.ID.Compact(), time.Time{})
	if err != nil || len(found.Movements) != 1 {
		t.Fatal(found, err)
	}
	for _, document := range []any{s, shown, found} {
		if text := mustJSON(t, document); strings.Contains(text, "u001e") || strings.Contains(text, "xyz-") {
			t.Errorf("a reference that is nobody's is shown: %s", text)
		}
	}
}

func TestWhatCannotBeOverridden(t *testing.T) {
	t.Parallel()
	w := overriding(t)
	young := w.transfers(time.Hour, nil)
	for _, c := range []struct {
		id       string
		settling adminapi.NewOverride
		status   int
		field    string
	}{
		{young.ID.String(), adminapi.NewOverride{As: "success", Reason: "r"}, http.StatusConflict, ""},
		{young.ID.String(), adminapi.NewOverride{As: "perhaps", Reason: "r"}, http.StatusBadRequest, "as"},
		{young.ID.String(), adminapi.NewOverride{As: "failed"}, http.StatusBadRequest, "reason"},
		{young.ID.String(), adminapi.NewOverride{As: "failed", Reason: "a\nb"}, http.StatusBadRequest, "reason"},
		{"PAY/1", adminapi.NewOverride{As: "failed", Reason: "r"}, http.StatusNotFound, ""},
		{movement.NewID().String(), adminapi.NewOverride{As: "failed", Reason: "r"}, http.StatusNotFound, ""},
	} {
		_, err := w.Override(t.Context(), c.id, c.settling)
		w.refused(err, c.status, c.field)
	}
	status, _, answer := w.send(http.MethodPost, "/admin/movements/"+young.ID.String()+"/override", "Bearer nobody", `{"as":"failed","reason":"r"}`)
	if status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", status, answer)
	}
}
