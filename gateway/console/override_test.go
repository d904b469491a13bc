package console_test

import (
	"context"
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
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
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
		d.Refund = kind.AddRefund(l, s).Order
		d.Simulators = obeying{}
		d.Override, d.Assign = override.New(l, s).Override, reconciler.Assign
	})...)
	l.Accounts = w.directory
	return w
}

// obeying are simulators that do what they are told.
type obeying struct{}

func (obeying) Do(context.Context, movement.Movement, sandbox.Play, money.Amount) error { return nil }

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

	first, err := adminapi.OverrideMovement.Call(t.Context(), w, adminapi.NewOverride{Movement: m.ID.Compact(), As: "success", Reason: "seen in their portal"})
	if err != nil || !first.Waiting || first.State != "pending" || first.Override.Operator != "ayu" || first.Reference != "PAY/1" {
		t.Fatalf("proposed: %+v, %v", first, err)
	}
	_, err = adminapi.OverrideMovement.Call(t.Context(), other, adminapi.NewOverride{Movement: m.ID.String(), As: "failed", Reason: "no"})
	w.refused(err, http.StatusConflict, "")
	second, err := adminapi.OverrideMovement.Call(t.Context(), other, adminapi.NewOverride{Movement: m.UpstreamReference(), As: "success", Reason: "called them"})
	if err != nil || second.Waiting || second.State != "succeeded" || second.Override.ConfirmedBy != "budi" {
		t.Fatalf("confirmed: %+v, %v", second, err)
	}
	if err := w.store.Note(t.Context(), time.Now(), m, "polled", `{"said":"pending"}`); err != nil {
		t.Fatal(err)
	}

	shown, err := adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: m.ID.Compact()})
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
	s, err := adminapi.OverrideMovement.Call(t.Context(), w, adminapi.NewOverride{Movement: m.ID.String(), As: "failed", Reason: "bounced", Alone: true})
	if err != nil || s.Waiting || s.State != "failed" || !s.Override.Alone {
		t.Fatalf("%+v, %v", s, err)
	}
	shown, err := adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: m.ID.String()})
	if err != nil || len(shown.Exceptions) != 1 || shown.Exceptions[0].Reason != "overridden_alone" || !shown.Exceptions[0].ResolvedAt.IsZero() {
		t.Errorf("for review: %+v, %v", shown.Exceptions, err)
	}
	found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: m.ID.Compact()})
	if err != nil || len(found.Movements) != 1 {
		t.Fatal(found, err)
	}
	for _, document := range []any{s, shown, found} {
		if text := mustJSON(t, document); strings.Contains(text, "u001e") || strings.Contains(text, "xyz-") {
			t.Errorf("a reference that is nobody's is shown: %s", text)
		}
	}
}

// TestOneOperatorsOverrideOfALargeSum: above approval_above one operator's word is a
// proposal, whatever it was asked to be, and small ones are summed.
func TestOneOperatorsOverrideOfALargeSum(t *testing.T) {
	t.Parallel()
	w := overriding(t, func(config *console.Config, _ *console.Dependencies) { config.ApprovalAbove = 100_000_000 })
	large := w.transfers(25*time.Hour, func(m *movement.Movement) { m.Amount = 900_000_000 })
	alone := adminapi.NewOverride{As: "success", Reason: "paid, they say", Alone: true}
	alone.Movement = large.ID.String()
	first, err := adminapi.OverrideMovement.Call(t.Context(), w, alone)
	if err != nil || !first.Waiting || first.State != "pending" || first.Override.Alone {
		t.Errorf("one operator decides 900,000,000: %+v, %v", first, err)
	}
	if again, err := adminapi.OverrideMovement.Call(t.Context(), w, alone); err != nil || !again.Waiting || again.State != "pending" {
		t.Errorf("the same operator again: %+v, %v", again, err)
	}
	second, err := adminapi.OverrideMovement.Call(t.Context(), adminapi.NewClient(w.url, otherToken), alone)
	if err != nil || second.Waiting || second.State != "succeeded" || second.Override.ConfirmedBy != "budi" {
		t.Errorf("another operator: %+v, %v", second, err)
	}
	// Of one merchant, in parts: the credit is summed with them.
	var parts []movement.Movement
	for _, reference := range []string{"PAY/2", "PAY/3"} {
		parts = append(parts, w.transfers(25*time.Hour, func(m *movement.Movement) {
			m.Owner, m.Reference, m.Amount = large.Owner, reference, 45_000_000
		}))
	}
	for i, part := range parts {
		alone.Movement = part.ID.String()
		if done, err := adminapi.OverrideMovement.Call(t.Context(), w, alone); err != nil || done.Waiting || done.State != "succeeded" {
			t.Errorf("part %d: %+v, %v", i, done, err)
		}
	}
	credit, err := adminapi.Credit.Call(t.Context(), w, adminapi.NewAdjustment{Merchant: large.Owner.MerchantID, Amount: 10_000_001, Reason: "r", Reference: "c"})
	if err != nil || credit.State != string(store.Waiting) {
		t.Errorf("a credit beside 90,000,000: %+v, %v", credit, err)
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
		c.settling.Movement = c.id
		_, err := adminapi.OverrideMovement.Call(t.Context(), w, c.settling)
		w.refused(err, c.status, c.field)
	}
	status, _, answer := w.send(http.MethodPost, "/admin/movements/"+young.ID.String()+"/override", "Bearer nobody", `{"as":"failed","reason":"r"}`)
	if status != http.StatusUnauthorized {
		t.Errorf("status %d: %s", status, answer)
	}
}

// TestTwoOperatorsAssignALargePayment: above approval_above the first operator's assignment
// waits, and another one's makes it.
func TestTwoOperatorsAssignALargePayment(t *testing.T) {
	t.Parallel()
	w := overriding(t, func(config *console.Config, _ *console.Dependencies) { config.ApprovalAbove = 5_000 })
	ctx, now := t.Context(), time.Now().UTC().Truncate(time.Second)
	m := w.collects(w.merchant().MerchantID, "ID10200", now, "INV/1")
	if ok, err := w.store.Apply(ctx, movement.Change{Movement: m, At: now, Transition: movement.Transition{
		Effect: movement.Move, From: []movement.State{movement.Submitting}, To: movement.Pending, Event: "pending", Detail: `{}`,
	}}); err != nil || !ok {
		t.Fatal(ok, err)
	}
	statement, err := w.store.Statement(ctx, m.Account())
	if err != nil {
		t.Fatal(err)
	}
	row := movement.ImportedLine{Payment: "rrn-1", ID: "row-1", Amount: 1, Currency: "IDR", At: now, Paid: true} // it is told to be paid whole
	if _, err := w.store.Import(ctx, now, statement, []movement.ImportedLine{row}, "1", now); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Match(ctx, now, statement, []movement.Match{{Payment: "rrn-1", State: movement.LineUnmatched}}); err != nil {
		t.Fatal(err)
	}
	assign := adminapi.NewAssignment{Movement: m.ID.String(), Payment: "rrn-1", Reason: "seen at the till"}
	for range 2 {
		if made, err := adminapi.AssignStatementLine.Call(ctx, w, assign); err != nil || !made.Waiting {
			t.Errorf("one operator assigns %s: %+v, %v", m.Amount, made, err)
		}
	}
	waits := w.waiting().Assignments
	if len(waits) != 1 || waits[0].Movement != m.ID.String() || waits[0].Payment != "rrn-1" || waits[0].Amount != m.Amount || waits[0].Operator != "ayu" {
		t.Errorf("waits %+v", waits)
	}
	if line, err := w.store.Line(ctx, m.Account(), "rrn-1"); err != nil || line.Movement != (movement.ID{}) {
		t.Errorf("the line is %+v, %v", line, err)
	}
	_, err = adminapi.AssignStatementLine.Call(ctx, adminapi.NewClient(w.url, otherToken), assign)
	if line, readErr := w.store.Line(ctx, m.Account(), "rrn-1"); readErr != nil || line.Movement != m.ID {
		t.Errorf("after another operator's word (%v) the line is %+v, %v", err, line, readErr)
	}
	if waits := w.waiting().Assignments; len(waits) != 0 {
		t.Errorf("still waits %+v", waits)
	}
}
