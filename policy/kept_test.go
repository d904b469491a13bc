package policy

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const keptRules = `package gerbang
` + limitsRule + `
admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "Not active." if not input.merchant.status == "active"

refusals contains "Too much." if {
	input.operation.kind == "transfer"
	input.amount > limit_of(input.merchant.tier)
}

limit_of(tier) := 100 if tier == "starter"

else := 500

refusals contains "Closed at night." if {
	input.merchant.labels.opens == "day"
	input.clock.hour < 6
}

refusals contains "Not to there." if {
	input.operation.kind == "transfer"
	input.fields.bank == "014"
}

refusals contains "No amount." if {
	input.operation.path == "/order"
	not input.amount
}

refusals contains "After the day." if {
	input.mode == "test"
	input.now > "2026-03-05"
}

refusals contains "Dear." if {
	input.operation.kind == "order"
	input.quote.price > 300
}

refusals contains "A limit of its own." if input.merchant.limits.calls.limit > 5

route := ["big", "small"] if input.merchant.tier == "gold"

route := ["small", "big"] if {
	input.merchant.tier == "starter"
	input.operation.kind == "transfer"
	input.amount > 500
}

route := ["small"] if {
	input.merchant.tier == "starter"
	input.operation.kind == "order"
	input.clock.hour < 6
}

route := [] if {
	input.merchant.tier == "starter"
	input.operation.kind == "query"
	input.merchant.labels.opens == "day"
}
`

// TestKeptDecisionsAreTheSame asks for each decision, refusals with their reasons among them, and for each order of
// providers twice: as it is kept, and anew.
func TestKeptDecisionsAreTheSame(t *testing.T) {
	t.Parallel()
	most := int64(9)
	for name, c := range map[string]struct {
		source     Source
		keeps, not bool // some are kept, some are not
	}{
		"the default":  {Default(), true, false},
		"amounts":      {with(dataFile, `{"tiers": {"starter": {"rate_per_second": 5, "burst": 10}}, "amounts": {"transfer": {"max": 400}}}`), true, true},
		"rules of all": {rulesOnly(keptRules), true, true},
		"rules of one": {rulesOnly(keptRules + `
refusals contains "Not you." if input.merchant.id == "m2"

route := ["small"] if {
	input.merchant.tier == "starter"
	input.operation.kind == "query"
	input.merchant.labels.opens == "always"
	input.merchant.id == "m3"
}
`), true, true},
		"of every field": {rulesOnly("package gerbang\n" + limitsRule + "\nadmit := {\"allow\": count(input) > 3, \"reasons\": [\"x\"]}\n"), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, random := must(t, c.source), rand.New(rand.NewPCG(1, 2))
			set.study = time.Minute // whatever else the machine does
			one := func(of ...string) string { return of[random.IntN(len(of))] }
			const asked = 6_000
			var refused, routed, unrouted bool // as it is kept; by rules, for some each time
			for i := range asked {
				tier, opens, status := one("starter", "gold"), one("day", "always"), one("active", "active", "suspended")
				record := map[string]int64{"starterday": 1, "starteralways": 2, "goldday": 3, "goldalways": 4}[tier+opens]
				if status == "suspended" {
					record += 10
				}
				kind := one("query", "transfer", "order")
				in := AdmitInput{
					Merchant: Merchant{
						ID: one("m1", "m2", "m3"), Tier: tier, Status: status, Version: record, Labels: map[string]string{"opens": opens},
						Limits: []OwnLimit{{Name: "calls", Limit: &most, ExpiresAt: noon}},
					},
					Mode: one("live", "test"), Operation: Operation{Path: "/" + kind, Kind: kind, Provider: "p"},
					Now: noon.Add(time.Duration(random.IntN(48)) * time.Hour),
				}
				if i < asked/2 { // the limit of its own ends in between
					in.Now = in.Now.Add(-48 * time.Hour)
				}
				if random.IntN(2) == 0 {
					in.Fields = map[string]any{"bank": one("014", "002")}
				}
				if amount := random.Int64N(1000); amount > 200 {
					in.Amount = &amount
				}
				if random.IntN(4) == 0 {
					in.Quote = map[string]any{"price": int64(random.IntN(600))}
				}
				limits := LimitsInput{Merchant: in.Merchant, Mode: in.Mode, Operation: in.Operation, Now: in.Now}
				if _, err := set.Limits(t.Context(), limits); err != nil && tier == "starter" {
					t.Fatal(err)
				}
				answer, kept, was := asKept(t, set, in)
				refused = refused || kept && !answer.Allow
				routed, unrouted = routed || was, unrouted || !was && i > asked/2
			}
			keeps, not := keeping(set)
			if (keeps > 0) != c.keeps || (not > 0) != c.not {
				t.Errorf("%d are kept, %d not", keeps, not)
			}
			if all := strings.HasPrefix(name, "rules of"); all && !(refused && routed && unrouted) || refused != c.keeps {
				t.Errorf("kept refusals: %t; routes are kept: %t, and asked for each time: %t", refused, routed, unrouted)
			}
		})
	}
}

// asKept asks for a decision and for an order of providers, each as it is kept and anew. It
// returns the decision, and which of both are kept.
func asKept(t *testing.T, set *Set, in AdmitInput) (anew Decision, decided, routed bool) {
	t.Helper()
	kept, decided := set.KeptAdmission(in)
	first, err := set.AdmitAndKeep(t.Context(), in)
	anew, other := set.Admit(t.Context(), in)
	if err != nil || other != nil || decided && !reflect.DeepEqual(kept, anew) || !reflect.DeepEqual(first, anew) {
		t.Fatalf("kept %t %+v, then %+v, %v; anew %+v, %v; of %+v", decided, kept, first, err, anew, other, in)
	}
	route, routed := set.KeptRoute(in)
	ordered, err := set.RouteAndKeep(t.Context(), in)
	order, other := set.Route(t.Context(), in)
	if err != nil || other != nil || routed && !reflect.DeepEqual(route, order) || !reflect.DeepEqual(ordered, order) {
		t.Fatalf("kept %t %#v, then %#v, %v; anew %#v, %v; of %+v", routed, route, ordered, err, order, other, in)
	}
	return anew, decided, routed
}

// recorded is an input of the log of decisions, as far as rules see it.
type recorded struct {
	At        int64          `json:"at"` // microseconds
	Merchant  string         `json:"merchant"`
	Operation string         `json:"operation"`
	Record    int64          `json:"record"`
	Live      bool           `json:"live"`
	Amount    *int64         `json:"amount"`
	Fields    map[string]any `json:"fields"`
	Quote     map[string]any `json:"quote"`
}

// readRecorded reads what a gateway has recorded of three merchants, who were refused by
// bounds of amounts and prices, an hour, rates, quotas and daily amounts.
func readRecorded(t *testing.T) (inputs []AdmitInput) {
	t.Helper()
	file, err := os.Open("testdata/recorded.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := json.NewDecoder(file)
	decoder.UseNumber() // as in a request
	var all []recorded
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	merchants := map[string]Merchant{
		"mer_large": {Tier: "scale"}, "mer_small": {Tier: "gold"}, "mer_buyer": {Tier: "starter", Labels: map[string]string{"opens": "day"}},
	}
	operations := map[string]Operation{
		"/payments/create": {Kind: "payment", Provider: "payments", Contract: "payments@1"}, "/payments/status": {Kind: "query", Provider: "payments"},
		"/ppob/order": {Kind: "order", Provider: "ppob"}, "/wallet1/transfer/bank": {Kind: "transfer", Provider: "wallet1"},
		"/wallet1/transfer/wallet": {Kind: "transfer", Provider: "wallet1"},
	}
	for _, r := range all {
		m, op := merchants[r.Merchant], operations[r.Operation]
		if m.Tier == "" || op.Kind == "" {
			t.Fatalf("nobody knows %+v", r)
		}
		m.ID, m.Status, m.Version, op.Path = r.Merchant, "active", r.Record, r.Operation
		in := AdmitInput{Merchant: m, Mode: "test", Operation: op, Now: time.UnixMicro(r.At).In(sampleZone), Amount: r.Amount, Fields: r.Fields}
		if r.Live {
			in.Mode = "live"
		}
		inputs = append(inputs, in.Quoted(r.Quote))
	}
	return inputs
}

// TestKeptDecisionsOfWhatWasRecorded asks about real requests often enough for each decision
// that can be kept to be kept, at the hour that they came at and at all others.
func TestKeptDecisionsOfWhatWasRecorded(t *testing.T) {
	t.Parallel()
	inputs := readRecorded(t)
	const tiers = `"tiers": {"starter": {"rate_per_second": 5, "burst": 10}, "scale": {"rate_per_second": 5, "burst": 10}, "gold": {"rate_per_second": 5, "burst": 10}}`
	for name, c := range map[string]struct {
		source     Source
		keeps, not bool // some are kept, some are not
	}{
		"the default":  {with(dataFile, "{"+tiers+"}"), true, false},
		"amounts":      {with(dataFile, "{"+tiers+`, "amounts": {"/payments/create": {"max": 30000}, "order": {"max": 15000}}}`), true, true},
		"rules of all": {rulesOnly(keptRules), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := must(t, c.source)
			set.study = time.Minute // whatever else the machine does
			allowed, refused := 0, 0
			for hour := range 24 {
				for _, in := range inputs {
					in.Now = in.Now.Add(time.Duration(hour) * time.Hour)
					if _, err := set.Limits(t.Context(), LimitsInput{Merchant: in.Merchant, Mode: in.Mode, Operation: in.Operation, Now: in.Now}); err != nil {
						t.Fatal(err)
					}
					if answer, _, _ := asKept(t, set, in); answer.Allow {
						allowed++
					} else {
						refused++
					}
				}
			}
			keeps, not := keeping(set)
			if (keeps > 0) != c.keeps || (not > 0) != c.not || allowed == 0 || (refused > 0) != c.not {
				t.Errorf("%d are kept, %d not; %d allowed, %d refused", keeps, not, allowed, refused)
			}
		})
	}
}

// keeping counts the combinations whose decision is kept, and those whose isn't though
// they were asked for often enough.
func keeping(s *Set) (keeps, not int) {
	for i := range s.kept.parts {
		for _, k := range s.kept.parts[i].young {
			switch {
			case k.admit.known.Load() != nil:
				keeps++
			case k.admit.asked.Load() >= studyAt:
				not++
			}
		}
	}
	return keeps, not
}

// What can't be found out in time is decided anew each time, and refuses nobody.
func TestStudyingThatFailsRefusesNobody(t *testing.T) {
	t.Parallel()
	set, in := must(t, Default()), request()
	set.study = time.Minute // whatever else the machine does
	if _, err := set.Limits(t.Context(), LimitsInput{Merchant: in.Merchant, Mode: in.Mode, Operation: in.Operation, Now: in.Now}); err != nil {
		t.Fatal(err)
	}
	for i := range studyAt {
		ctx, cancel := context.WithCancel(t.Context())
		if i == studyAt-1 {
			ctx = &ending{Context: ctx, cancel: cancel}
		}
		if decision, err := set.AdmitAndKeep(ctx, in); err != nil || !decision.Allow {
			t.Fatal(decision, err)
		}
		cancel()
	}
	if keeps, not := keeping(set); keeps != 0 || not != 1 {
		t.Errorf("%d kept, %d not", keeps, not)
	}
	for range studyAt { // it is found out at twice as many
		if _, err := set.AdmitAndKeep(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	if keeps, not := keeping(set); keeps != 1 || not != 0 {
		t.Errorf("tried again: %d kept, %d not", keeps, not)
	}
}

// ending is a context that ends as soon as somebody derives a deadline from it.
type ending struct {
	context.Context
	cancel context.CancelFunc
}

// Deadline is what deriving a deadline asks for first.
func (e *ending) Deadline() (time.Time, bool) {
	e.cancel()
	return e.Context.Deadline()
}
