package console_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// listsRefusals lists a refused request and those before it, page by page.
func (w *world) listsRefusals(merchant, other string, last decision.Input) {
	w.Helper()
	var inputs []decision.Input
	for i := range 5 { // of one second, of another day, and others' between them
		in := last
		in.RequestID = madeAt(w.T, last.At)
		in.At, in.Code, in.Message, in.Bare = last.At.Add(-time.Duration(i/2)*20*time.Hour-time.Minute), "INVALID_REQUEST", "amount is required", true
		in.ID[0] = byte(i)
		inputs = append(inputs, in)
		in.ID[1], in.Merchant = 1, other
		inputs = append(inputs, in)
		in.ID[1], in.Merchant, in.Live = 2, merchant, false
		inputs = append(inputs, in)
	}
	requests := map[string]string{}
	for i, in := range inputs {
		requests[in.ID.String()] = in.RequestID
		packed, err := decision.PackInputs([]decision.Input{in})
		if err != nil {
			w.Fatal(err)
		}
		sealed, err := w.vault.SealDecisions(packed)
		if err != nil {
			w.Fatal(err)
		}
		if err := w.store.AddDecisions(w.Context(), store.DecisionPart{Minute: in.At.Truncate(time.Minute), Part: int64(i + 2), Counts: decision.Pack(nil), Inputs: sealed}); err != nil {
			w.Fatal(err)
		}
	}
	var told []string
	after := ""
	for {
		page, err := adminapi.ListRefusals.Call(w.Context(), w, adminapi.RefusalFilter{Merchant: merchant, Mode: "live", After: after, Limit: 2})
		if err != nil || len(page.Refusals) > 2 {
			w.Fatalf("%+v, %v", page, err)
		}
		for _, r := range page.Refusals {
			told = append(told, r.DecisionID)
			if r.DecisionID != last.ID.String() && (r.Code != "INVALID_REQUEST" || r.Message != "amount is required" || r.Operation != last.Operation || r.RequestID != requests[r.DecisionID]) {
				w.Errorf("told %+v", r)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	want := []string{last.ID.String()}
	for _, i := range []int{1, 0, 3, 2, 4} { // of one time, the higher id first
		want = append(want, inputs[3*i].ID.String())
	}
	if !slices.Equal(told, want) {
		w.Errorf("told %q, want %q", told, want)
	}
	_, err := adminapi.ListRefusals.Call(w.Context(), w, adminapi.RefusalFilter{Merchant: merchant, Mode: "live", After: "yesterday", Limit: 2})
	w.refused(err, http.StatusBadRequest, "after")
}

// TestAMerchantSeesWhatRefusedItsRequests, and nothing of another merchant's.
func TestAMerchantSeesWhatRefusedItsRequests(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

refusals contains "Not to there." if input.fields.bank == "014"

refusals contains sprintf("Not %d.", [input.amount]) if input.fields.bank == "015"
`
	source := policy.Default()
	source["there.rego"] = []byte(rules)
	set, err := policy.Compile(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	key := decision.NewKey([]byte("the installation's"))
	var sums []decision.Sum
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) {
		d.Policy = func() *policy.Set { return set }
		d.Decisions = console.Decisions{
			Key: key, Policies: policiesOf(d.Policy), Past: d.Merchants.(*store.Store), Open: d.Vault.(*tenants.Vault).OpenDecisions,
			Policy: func(_ context.Context, v policy.Version) (*policy.Set, error) {
				if v == set.Version() {
					return set, nil
				}
				return nil, nil //nolint:nilnil // none
			},
			Replica: func(context.Context, uint16, time.Time) (string, error) { return "", nil },
		}
		d.Decided = func(context.Context, tenants.MerchantID) ([]decision.Sum, time.Time, error) {
			return sums, time.Now(), nil
		}
	})
	merchant, other := w.merchant().MerchantID, w.merchant().MerchantID
	record, err := adminapi.ShowMerchant.Call(t.Context(), w, adminapi.MerchantID{Merchant: merchant})
	if err != nil {
		t.Fatal(err)
	}
	number := map[bool]decision.Rule{}
	for _, r := range set.Rules() {
		if r.File == "there.rego" {
			number[r.Says != ""] = decision.Policy(r.Number)
		}
	}
	constant, computed := number[true], number[false]
	at := time.Now().UTC().Truncate(time.Minute).Add(-time.Hour)
	sum := func(rule decision.Rule, version policy.Version, n int64) decision.Sum {
		return decision.Sum{Operation: "/bank/name", Version: string(version), Live: true, Rule: rule, N: n, Last: at}
	}
	sums = []decision.Sum{
		sum(decision.Admitted, set.Version(), 100), sum(decision.Admitted, "gone", 10), sum(decision.Rate(0), set.Version(), 5),
		sum(constant, set.Version(), 4), sum(computed, set.Version(), 3), sum(constant, "gone", 2),
		{Operation: "/bank/name", Rule: decision.Admitted, N: 1000, Last: at},
		{Operation: "/bank/name", Version: string(set.Version()), Live: true, Rule: decision.Admitted, Invalid: true, N: 1, Last: at},
	}
	found, err := adminapi.ListRequests.Call(t.Context(), w, adminapi.InMode{Merchant: merchant, Mode: "live"})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, r := range found.Requests {
		told = append(told, r.Verdict+"|"+r.Rule+"|"+r.Reason)
		if slow := r.Verdict == "slowed"; slow && (r.Limit == nil || r.Limit.RatePerSecond != 5 || r.Limit.Limit != 10) || r.Verdict == "admitted" && r.N != 110 {
			t.Errorf("%+v, %+v", r, r.Limit)
		}
	}
	if want := []string{"slowed|rate default|", "denied|gerbang.refusals|Not to there.", "denied|gerbang.refusals|", "denied|" + constant.String() + "|", "invalid|the request is invalid|", "admitted||"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}

	request := madeAt(t, at.Add(200*time.Millisecond))
	series := decision.Series{Merchant: merchant, Operation: "/bank/name", Version: string(set.Version()), Record: record.Version, Live: true, Rule: computed}
	input := decision.Input{
		ID: decision.NewNamer(key, 7).Name(at, series.Version, merchant, true, series.Operation, computed), At: at, Series: series,
		Amount: new(int64(5000)), Fields: map[string]any{"bank": "015"}, RequestID: request,
	}
	packed, err := decision.PackInputs([]decision.Input{input})
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := w.vault.SealDecisions(packed)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.store.AddDecisions(t.Context(), store.DecisionPart{
		Minute: at.Truncate(time.Minute), Part: 1, Counts: decision.Pack([]decision.Counted{{Series: series, Counts: []decision.Count{{Second: uint8(at.Second()), N: 1}}}}), Inputs: sealed,
	}); err != nil {
		t.Fatal(err)
	}
	w.listsRefusals(merchant, other, input)
	for name, find := range map[string]func(id string) (adminapi.FindResult, error){
		"the merchant": func(id string) (adminapi.FindResult, error) {
			return adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: "live", ID: id})
		},
		"an operator": func(id string) (adminapi.FindResult, error) {
			return adminapi.Find.Call(t.Context(), w, adminapi.Search{ID: id})
		},
	} {
		for what, id := range map[string]string{"decision": input.ID.String(), "request": request} {
			found, err := find(id)
			if err != nil || found.Decision == nil || found.Decision.ID != input.ID.String() || len(found.Decision.Places) != 1 || found.Decision.Input != nil {
				t.Fatalf("%s by the %s's id: %+v, %v", name, what, found.Decision, err)
			}
			if reason := found.Decision.Places[0].Reason; (name == "the merchant") != (reason == "Not 5000.") {
				t.Errorf("%s is told %q", name, reason)
			}
		}
	}
	for _, of := range []struct{ merchant, mode string }{{other, "live"}, {merchant, "test"}} {
		for _, id := range []string{input.ID.String(), request} {
			if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: of.merchant, Mode: of.mode, ID: id}); err != nil || found.Decision != nil || len(found.Movements) != 0 {
				t.Errorf("%s of another: %+v, %v", id, found, err)
			}
		}
	}
	made := w.transfers(time.Hour, func(m *movement.Movement) { m.RequestID = madeAt(t, time.Now().Add(-time.Hour)) })
	if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: made.Owner.MerchantID, Mode: made.Owner.Mode, ID: made.RequestID}); err != nil || len(found.Movements) != 1 || found.Movements[0].ID != made.ID.String() {
		t.Errorf("a movement by its request: %+v, %v", found, err)
	}
	if found, err := adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: made.Owner.Mode, ID: made.RequestID}); err != nil || len(found.Movements) != 0 {
		t.Errorf("another's movement by its request: %+v, %v", found, err)
	}
	_, err = adminapi.FindOf.Call(t.Context(), w, adminapi.SearchOf{Merchant: merchant, Mode: "live"})
	w.refused(err, http.StatusBadRequest, "id")
}
