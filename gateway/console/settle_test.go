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

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/engine"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// moving is the catalog of the wallet1 plugin's own manifest.
var moving = sync.OnceValues(func() (*catalog.Catalog, error) {
	document, err := os.ReadFile("../../plugins/wallet1/manifest.json")
	if err != nil {
		return nil, err
	}
	parsed, err := manifest.Parse(document)
	if err != nil {
		return nil, err
	}
	snapshot, err := catalog.Build([]*manifest.Manifest{parsed})
	return catalog.New(snapshot), err
})

// deciding is a console over a real engine, which has no providers.
func deciding(t *testing.T) *world {
	t.Helper()
	offered, err := moving()
	if err != nil {
		t.Fatal(err)
	}
	var late engine.Dependencies
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		s, ok := d.Movements.(*store.Store)
		if !ok {
			t.Fatal("the movements are not the store's")
		}
		late = engine.Dependencies{Movements: s, Records: s, Decisions: s, Catalog: offered, Now: d.Now, Log: d.Log}
		d.Decider = deciderOf(func() *engine.Engine { return engine.New(late) })
	})
	late.Accounts = w.directory
	return w
}

// transfers claims a transfer of a new merchant and brings it to pending; change is
// made to its draft.
func (w *world) transfers(age time.Duration, change func(*movement.Movement)) movement.Movement {
	w.Helper()
	at := time.Now().Add(-age)
	m := movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: w.merchant().MerchantID, Mode: "live"}, Kind: manifest.Transfer, Reference: "PAY/1"},
		ID:  movement.NewID(), Operation: "/wallet1/transfer/bank", Provider: "wallet1", Amount: 50_000, Fee: 2_500, NameMatch: new(true),
		Request:   json.RawMessage(`{"body":{"account_no":"123","amount":50000},"path":"/wallet1/transfer/bank"}`),
		Quote:     json.RawMessage(`{"session":"s-1"}`),
		RequestID: uuid.Must(uuid.NewV7()).String(), DecisionID: uuid.Must(uuid.NewV7()).String(), PolicyVersion: "p-1",
		ConnectionOwner: manifest.OwnerMerchant, ConnectionVersion: 3, CallbackURL: "https://shop.example/cb?token=hidden",
		SendBy: at.Add(5 * time.Second), CreatedAt: at, DueAt: at,
	}
	if change != nil {
		change(&m)
	}
	claimed, ok, err := w.store.Reserve(w.Context(), m)
	if err != nil || !ok {
		w.Fatalf("claim: %t, %v", ok, err)
	}
	if ok, err := w.store.Move(w.Context(), at.Add(time.Second), store.Move{
		Movement: claimed, To: movement.Pending, Event: "pending", Detail: `{"source":"call"}`, ProviderReference: "prov-" + strings.Trim(m.Reference, "\x1eabc/-1"),
	}); err != nil || !ok {
		w.Fatalf("move: %t, %v", ok, err)
	}
	return claimed
}

func TestTwoOperatorsSettleATransfer(t *testing.T) {
	t.Parallel()
	w := deciding(t)
	m := w.transfers(25*time.Hour, nil)
	other := console.NewClient(w.url, otherToken)

	first, err := w.SettleMovement(t.Context(), m.ID.Compact(), console.Settling{As: "success", Reason: "seen in their portal"})
	if err != nil || !first.Waiting || first.State != "pending" || first.Decision.Operator != "ayu" || first.Reference != "PAY/1" {
		t.Fatalf("proposed: %+v, %v", first, err)
	}
	_, err = other.SettleMovement(t.Context(), m.ID.String(), console.Settling{As: "failed", Reason: "no"})
	w.refused(err, http.StatusConflict, "")
	second, err := other.SettleMovement(t.Context(), m.UpstreamReference(), console.Settling{As: "success", Reason: "called them"})
	if err != nil || second.Waiting || second.State != "succeeded" || second.Decision.ConfirmedBy != "budi" {
		t.Fatalf("confirmed: %+v, %v", second, err)
	}
	if err := w.store.Note(t.Context(), time.Now(), m, "looked", `{"said":"pending"}`); err != nil {
		t.Fatal(err)
	}

	shown, err := w.Movement(t.Context(), m.ID.Compact())
	if err != nil {
		t.Fatal(err)
	}
	last := shown.Story[len(shown.Story)-1]
	if shown.State != "succeeded" || last.Event != "decided" || !strings.Contains(last.Detail, `"ayu, budi"`) || !strings.Contains(last.Detail, "called them") {
		t.Errorf("the story ends with %+v", last)
	}
	if shown.Fee != 2500 || shown.NameMatch == nil || !*shown.NameMatch || shown.ConnectionVersion != 3 || shown.ConnectionOwner != "merchant" ||
		string(shown.Quote) != `{"session":"s-1"}` || shown.PolicyVersion != "p-1" || shown.RequestID != m.RequestID || len(shown.Request) == 0 {
		t.Errorf("shown %+v", shown)
	}
	if len(shown.Verdicts) != 1 || shown.Verdicts[0].ConfirmedReason != "called them" || len(shown.Said) != 1 || shown.Said[0].Times != 1 {
		t.Errorf("decided %+v, said %+v", shown.Verdicts, shown.Said)
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

func TestOneOperatorSettlesAlone(t *testing.T) {
	t.Parallel()
	w := deciding(t)
	m := w.transfers(25*time.Hour, func(m *movement.Movement) { m.Reference, m.Fingerprint = "\x1exyz-1", "\x1exyz-" })
	s, err := w.SettleMovement(t.Context(), m.ID.String(), console.Settling{As: "failed", Reason: "bounced", Alone: true})
	if err != nil || s.Waiting || s.State != "failed" || !s.Decision.Alone {
		t.Fatalf("%+v, %v", s, err)
	}
	shown, err := w.Movement(t.Context(), m.ID.String())
	if err != nil || len(shown.Attention) != 1 || shown.Attention[0].Reason != "decided_alone" || shown.Attention[0].ResolvedAt != nil {
		t.Errorf("for review: %+v, %v", shown.Attention, err)
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

func TestWhatCannotBeSettled(t *testing.T) {
	t.Parallel()
	w := deciding(t)
	young := w.transfers(time.Hour, nil)
	for _, c := range []struct {
		id       string
		settling console.Settling
		status   int
		field    string
	}{
		{young.ID.String(), console.Settling{As: "success", Reason: "r"}, http.StatusConflict, ""},
		{young.ID.String(), console.Settling{As: "perhaps", Reason: "r"}, http.StatusBadRequest, "as"},
		{young.ID.String(), console.Settling{As: "failed"}, http.StatusBadRequest, "reason"},
		{young.ID.String(), console.Settling{As: "failed", Reason: "a\nb"}, http.StatusBadRequest, "reason"},
		{"PAY/1", console.Settling{As: "failed", Reason: "r"}, http.StatusNotFound, ""},
		{movement.NewID().String(), console.Settling{As: "failed", Reason: "r"}, http.StatusNotFound, ""},
	} {
		_, err := w.SettleMovement(t.Context(), c.id, c.settling)
		w.refused(err, c.status, c.field)
	}
	status, _, answer := w.send(http.MethodPost, "/admin/movements/"+young.ID.String()+"/settle", "Bearer nobody", `{"as":"failed","reason":"r"}`)
	if status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", status, answer)
	}
}
