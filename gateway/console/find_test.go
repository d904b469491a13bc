package console_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestAnyIDIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	m := w.transfers(time.Hour, nil)
	old := w.transfers(40*24*time.Hour, func(m *movement.Movement) {
		m.Reference, m.RequestID, m.DecisionID = "OLD/1", uuid.NewString(), "d-old"
	})
	ids := func(id string, since time.Time) (found, by []string) {
		t.Helper()
		f, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id, Since: since})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range f.Movements {
			found, by = append(found, m.ID), append(by, strings.Join(m.By, "+"))
		}
		return found, by
	}
	for by, names := range map[string][]string{
		"id":                 {m.ID.String(), m.ID.Compact(), m.UpstreamReference()},
		"reference":          {"PAY/1"},
		"request_id":         {m.RequestID},
		"decision_id":        {m.DecisionID},
		"provider_reference": {"prov-PAY"},
	} {
		for _, name := range names {
			if found, got := ids(name, time.Time{}); !slices.Equal(found, []string{m.ID.String()}) || !slices.Equal(got, []string{by}) {
				t.Errorf("%s %s finds %q by %q", by, name, found, got)
			}
			if by == "id" || by == "reference" {
				continue
			}
			if shown, err := adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: name}); err != nil || shown.ID != m.ID.String() {
				t.Errorf("%s is shown as %s, %v", name, shown.ID, err)
			}
		}
	}
	// What tells no time is only found in the last month, unless more is asked for.
	for _, name := range []string{old.RequestID, "d-old", "prov-OLD"} {
		if found, _ := ids(name, time.Time{}); len(found) != 0 {
			t.Errorf("%s is found in the last month: %q", name, found)
		}
		if found, _ := ids(name, time.Now().Add(-60*24*time.Hour)); !slices.Equal(found, []string{old.ID.String()}) {
			t.Errorf("%s finds %q in two months", name, found)
		}
	}
	if found, _ := ids("OLD/1", time.Time{}); !slices.Equal(found, []string{old.ID.String()}) {
		t.Errorf("its merchant's name finds %q, however old", found)
	}
	if found, _ := ids("nothing", time.Time{}); len(found) != 0 {
		t.Errorf("nothing finds %q", found)
	}
	for _, id := range []string{"", "a\x1eb", strings.Repeat("x", 256)} {
		_, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id})
		w.refused(err, http.StatusBadRequest, "id")
	}
}

// TestARequestThatTellsItsTimeIsFoundWheneverItWas: the gateway's own ids do.
func TestARequestThatTellsItsTimeIsFoundWheneverItWas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := 400 * 24 * time.Hour
	m := w.transfers(long, func(m *movement.Movement) { m.RequestID = madeAt(t, time.Now().Add(-long)) })
	found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: m.RequestID})
	if err != nil || len(found.Movements) != 1 || found.Movements[0].ID != m.ID.String() {
		t.Errorf("found %+v, %v", found, err)
	}
	if _, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: madeAt(t, time.Now().Add(-long))}); err != nil {
		t.Error(err)
	}
}

// madeAt is an id as the gateway would have made it at a time.
func madeAt(t *testing.T, at time.Time) string {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	for i, milli := 5, at.UnixMilli(); i >= 0; i, milli = i-1, milli>>8 {
		id[i] = byte(milli)
	}
	return id.String()
}

func TestSeveralMovementsOfOneName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.transfers(2*time.Hour, nil), w.transfers(time.Hour, nil)
	found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: "PAY/1"})
	if err != nil || len(found.Movements) != 2 || found.Movements[0].ID != second.ID.String() || found.Movements[1].ID != first.ID.String() {
		t.Fatalf("found %+v, %v", found, err)
	}
	var events []string
	for _, entry := range found.Movements[0].History {
		events = append(events, entry.Event)
	}
	if !slices.Equal(events, []string{"reserved", "pending"}) {
		t.Errorf("the chain is %q", events)
	}
	_, err = adminapi.ShowMovement.Call(t.Context(), w, adminapi.MovementID{Movement: "PAY/1"})
	w.refused(err, http.StatusConflict, "")
}

// TestWhateverHasANameIsFound: what is no movement is found by its id or its name.
func TestWhateverHasANameIsFound(t *testing.T) {
	t.Parallel()
	w := withPolicy(t)
	ctx := t.Context()
	made, err := adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko Kopi Senja", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	merchant := made.MerchantID
	key := w.account(merchant).Keys()[0]
	if _, err := adminapi.Credit.Call(ctx, w, adminapi.NewAdjustment{Merchant: merchant, Mode: "live", Amount: 1000, Reason: "a deposit", Reference: "dep-1"}); err != nil {
		t.Fatal(err)
	}
	event := uuid.New()
	if err := w.store.AddCallback(ctx, time.Now(), movement.Owner{MerchantID: merchant, Mode: "test"}, movement.CallbackEvent{ID: event, Event: "test", URL: "https://shop.example", Body: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	version := string(policy.Default().Version())
	for _, c := range []struct{ kind, text, id, mode string }{
		{"merchant", merchant, merchant, ""}, {"merchant", "kopi s", merchant, ""}, {"merchant", "TOKO", merchant, ""},
		{"key", string(key.ID), string(key.ID), string(key.Mode)}, {"adjustment", "dep-1", "dep-1", "live"},
		{"callback", event.String(), event.String(), "test"},
		{"policy", version, version, ""}, {"policy", version[:12], version, ""},
	} {
		found, err := adminapi.Find.Call(ctx, w, adminapi.Search{ID: c.text})
		if err != nil || len(found.Movements) != 0 || len(found.Places) != 1 || found.Places[0].Kind != c.kind || found.Places[0].ID != c.id || found.Places[0].Mode != c.mode {
			t.Errorf("%s %s finds %+v, %v", c.kind, c.text, found, err)
		}
		if err == nil && c.kind != "policy" && found.Places[0].MerchantID != merchant {
			t.Errorf("%s is whose: %+v", c.kind, found.Places[0])
		}
	}
	for _, text := range []string{uuid.NewString(), "k", "%", "_", strings.Repeat("a", 64)} {
		if found, err := adminapi.Find.Call(ctx, w, adminapi.Search{ID: text}); err != nil || len(found.Places) != 0 {
			t.Errorf("%q finds %+v, %v", text, found.Places, err)
		}
	}
}

// TestAReferenceThatReadsAsADecisionsIDIsFound: of the ids that merchants make many do, by
// chance.
func TestAReferenceThatReadsAsADecisionsIDIsFound(t *testing.T) {
	t.Parallel()
	key := decision.NewKey([]byte("the installation's"))
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Decisions.Key = key })
	reference := uuid.NewString()
	for _, err := key.Open(reference, time.Now()); err != nil; _, err = key.Open(reference, time.Now()) {
		reference = uuid.NewString()
	}
	w.transfers(time.Hour, func(m *movement.Movement) { m.Reference = reference })
	if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: reference}); err != nil || len(found.Movements) != 1 {
		t.Errorf("%s finds %+v, %v", reference, found, err)
	}
}

// TestWhatTellsItsTimeVisitsNoMerchant: an id of the gateway's own is not looked for
// among the references of every merchant.
func TestWhatTellsItsTimeVisitsNoMerchant(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Movements = visiting{d.Movements, &visits} })
	m := w.transfers(time.Hour, func(m *movement.Movement) { m.RequestID = madeAt(t, time.Now().Add(-time.Hour)) })
	for _, id := range []string{m.ID.String(), m.ID.Compact(), m.UpstreamReference(), m.RequestID} {
		if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id}); err != nil || len(found.Movements) != 1 || visits.Load() != 0 {
			t.Errorf("%s: found %d, %d visits, %v", id, len(found.Movements), visits.Load(), err)
		}
	}
	if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: m.Reference}); err != nil || len(found.Movements) != 1 || visits.Load() != 1 {
		t.Errorf("by its reference: found %d, %d visits, %v", len(found.Movements), visits.Load(), err)
	}
}

// TestWhatIsFoundByItsKeyReadsNoNames: of a hundred thousand merchants all are read for one.
func TestWhatIsFoundByItsKeyReadsNoNames(t *testing.T) {
	t.Parallel()
	var visits atomic.Int64
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Movements, d.Finder = visiting{d.Movements, &visits}, reading{d.Finder, &visits}
	})
	made, err := adminapi.CreateMerchant.Call(t.Context(), w, adminapi.NewMerchant{Name: "Toko Kopi Senja", Tier: "starter"})
	if err != nil {
		t.Fatal(err)
	}
	m := w.transfers(time.Hour, func(m *movement.Movement) { m.RequestID = madeAt(t, time.Now().Add(-time.Hour)) })
	for _, id := range []string{made.MerchantID, string(w.account(made.MerchantID).Keys()[0].ID), m.ID.String(), m.UpstreamReference(), m.RequestID} {
		found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id})
		if err != nil || len(found.Movements)+len(found.Places) != 1 || visits.Load() != 0 {
			t.Errorf("%s finds %+v with %d visits, %v", id, found, visits.Load(), err)
		}
	}
	for _, id := range []string{m.Reference, "kopi", "nobody's"} {
		if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id, Scan: "false"}); err != nil || !found.More || len(found.Movements)+len(found.Places) != 0 || visits.Load() != 0 {
			t.Errorf("by key, %s finds %+v with %d visits, %v", id, found, visits.Load(), err)
		}
	}
	if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: m.RequestID, Scan: "false"}); err != nil || found.More || len(found.Movements) != 1 {
		t.Errorf("by key, %s finds %+v, %v", m.RequestID, found, err)
	}
	if found, err := adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: "kopi"}); err != nil || found.More || len(found.Places) != 1 || visits.Load() == 0 {
		t.Errorf("a name finds %+v with %d visits, %v", found, visits.Load(), err)
	}
}

// reading counts how often all names, or all credits and debits, are read.
type reading struct {
	console.Finder

	visits *atomic.Int64
}

func (r reading) MerchantsNamed(ctx context.Context, text string, most int) ([]tenants.Merchant, error) {
	r.visits.Add(1)
	return r.Finder.MerchantsNamed(ctx, text, most)
}

func (r reading) AdjustmentsByReference(ctx context.Context, reference string, most int) ([]store.Adjustment, error) {
	r.visits.Add(1)
	return r.Finder.AdjustmentsByReference(ctx, reference, most)
}

type movements = console.Movements

// visiting counts how often the movements of all merchants are looked through.
type visiting struct {
	movements

	visits *atomic.Int64
}

func (v visiting) MovementsByReference(ctx context.Context, reference string, most int) ([]movement.Movement, error) {
	v.visits.Add(1)
	return v.movements.MovementsByReference(ctx, reference, most)
}
