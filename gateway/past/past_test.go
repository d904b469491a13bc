package past_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/past"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

var noon = time.Date(2026, 11, 20, 5, 0, 0, 0, time.UTC)

// shelf is what is kept of the past, in memory.
type shelf struct {
	parts []store.DecisionPart
	moves []movement.Movement
	then  map[int64]tenants.Merchant
	used  int64
	asked [][]string
}

func (s *shelf) Decisions(_ context.Context, since, before time.Time) (found []store.DecisionPart, _ error) {
	for _, p := range s.parts {
		if !p.Minute.Before(since) && p.Minute.Before(before) {
			found = append(found, p)
		}
	}
	return found, nil
}

func (s *shelf) MovementsDecided(_ context.Context, r store.DecidedRange) (found []movement.Movement, _ error) {
	for _, m := range s.moves {
		late := m.CreatedAt.After(r.AfterAt) || m.CreatedAt.Equal(r.AfterAt) && m.ID.String() > r.After.String()
		if !m.CreatedAt.Before(r.Since) && m.CreatedAt.Before(r.Before) && late && (r.Kind == "" || r.Kind == string(m.Kind)) && len(found) < r.Most {
			found = append(found, m)
		}
	}
	return found, nil
}

func (s *shelf) MerchantRecord(_ context.Context, _ tenants.MerchantID, version int64) (tenants.Merchant, error) {
	if m, known := s.then[version]; known {
		return m, nil
	}
	return tenants.Merchant{}, store.ErrNotFound
}

func (s *shelf) CountDecisions(ctx context.Context, since, before time.Time, add func(minute time.Time, counts []byte) error) error {
	parts, _ := s.Decisions(ctx, since, before)
	for _, p := range parts {
		if err := add(p.Minute, p.Counts); err != nil {
			return err
		}
	}
	return nil
}

func (s *shelf) MerchantsByID(_ context.Context, ids []string) (found []tenants.Merchant, _ error) {
	s.asked = append(s.asked, ids)
	for _, id := range ids {
		if !strings.HasPrefix(id, "gone") {
			found = append(found, tenants.Merchant{ID: tenants.MerchantID(id), Tier: "starter", Status: tenants.Active, Version: 2})
		}
	}
	return found, nil
}

func (s *shelf) UsageIn(_ context.Context, _, period string) ([]store.UsedBy, error) {
	if period != noon.Format("2006-01") {
		return nil, nil
	}
	return []store.UsedBy{{Owner: movement.Owner{MerchantID: "mer_a", Mode: "live"}, Used: store.Used{Name: "wallet2", Units: s.used}}}, nil
}

func reader(t testing.TB, s *shelf) (*past.Reader, *policy.Set) {
	t.Helper()
	set, err := policy.Compile(t.Context(), policy.Default())
	if err != nil {
		t.Fatal(err)
	}
	offered, err := catalog.Build(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &past.Reader{
		Records: s, Key: decision.NewKey([]byte("key")), Operations: offered, Location: time.UTC,
		Open:   func(sealed []byte) ([]byte, error) { return sealed, nil },
		Policy: func(string) *policy.Set { return set },
	}, set
}

// TestThePastIsReadUnderTheRecordsOfThen: the present one, one that was replaced, and one that nobody kept.
func TestThePastIsReadUnderTheRecordsOfThen(t *testing.T) {
	t.Parallel()
	s := &shelf{then: map[int64]tenants.Merchant{1: {ID: "mer_a", Tier: "growth", Status: tenants.Active, Version: 1}}}
	r, set := reader(t, s)
	for i, record := range []int64{1, 2, 7} {
		counted := []decision.Counted{{
			Series: decision.Series{Merchant: "mer_a", Operation: catalog.BalancePath, Version: string(set.Version()), Record: record, Live: true},
			Counts: []decision.Count{{Second: 1, N: 2}},
		}}
		s.parts = append(s.parts, store.DecisionPart{Minute: noon.Add(time.Duration(i) * time.Minute), Replica: uuid.UUID{1}, Part: 1, Counts: decision.Pack(counted)})
	}
	var tiers []string
	for p, err := range r.Past(t.Context(), noon, noon.Add(time.Hour)) {
		switch {
		case err != nil:
			t.Fatal(err)
		case p.Record == nil:
			tiers = append(tiers, "none")
		default:
			tiers = append(tiers, p.Record.Tier)
		}
	}
	if got := fmt.Sprint(tiers); got != "[growth starter none]" {
		t.Errorf("read under %s", got)
	}
	s.parts[0].Counts = []byte("broken")
	for _, err := range r.Past(t.Context(), noon, noon.Add(time.Hour)) {
		if err == nil {
			t.Error("a broken part is read")
		}
		break
	}
}

// TestRecordsAreReadTogether: those of a minute at once, and each once for both readings of the log. A merchant who is there no
// more has none.
func TestRecordsAreReadTogether(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	r, set := reader(t, s)
	const merchants, minutes = 500, 3
	for minute := range minutes {
		var counted []decision.Counted
		for i := range merchants {
			name := fmt.Sprintf("mer_%d", i)
			if i%100 == 0 {
				name = fmt.Sprintf("gone_%d", i)
			}
			counted = append(counted, decision.Counted{
				Series: decision.Series{Merchant: name, Operation: catalog.BalancePath, Version: string(set.Version()), Record: 2, Live: true},
				Counts: []decision.Count{{Second: uint8(minute), N: 1}},
			})
		}
		s.parts = append(s.parts, store.DecisionPart{Minute: noon.Add(time.Duration(minute) * time.Minute), Counts: decision.Pack(counted)})
	}
	if _, err := r.World(t.Context(), noon, noon.Add(time.Hour), noon.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	read := 0
	for p, err := range r.Past(t.Context(), noon, noon.Add(time.Hour)) {
		if gone := strings.HasPrefix(p.Merchant, "gone"); err != nil || gone != (p.Record == nil) || !gone && p.Record.ID != p.Merchant {
			t.Fatalf("%+v, %v", p, err)
		}
		read++
	}
	if read != minutes*merchants || len(s.asked) != 1 || len(s.asked[0]) != merchants {
		t.Errorf("%d were read, of merchants asked for %d times", read, len(s.asked))
	}
}

// TestAMovementIsWhereItWasDecided: it is reserved later than it is decided, perhaps in another minute.
func TestAMovementIsWhereItWasDecided(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	r, set := reader(t, s)
	at := noon.Add(59 * time.Second)
	id := decision.NewNamer(r.Key, 1).Name(at, string(set.Version()), "mer_a", true, "/gone/create", decision.Admitted)
	s.moves = []movement.Movement{{
		Key: movement.Key{Owner: movement.Owner{MerchantID: "mer_a", Mode: "live"}, Kind: "payment"}, ID: movement.NewID(), Operation: "/gone/create",
		Amount: 700, CreatedAt: at.Add(3 * time.Second), DecisionID: id.String(), PolicyVersion: string(set.Version()), Request: []byte(`{"body":{}}`),
	}}
	counted := []decision.Counted{{
		Series: decision.Series{Merchant: "mer_a", Operation: "/gone/create", Version: string(set.Version()), Record: 2, Live: true}, Counts: []decision.Count{{Second: 59, N: 1}},
	}}
	s.parts = []store.DecisionPart{{Minute: noon, Counts: decision.Pack(counted)}}
	var found []impact.Past
	for p, err := range r.Past(t.Context(), noon, noon.Add(10*time.Minute)) {
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, p)
	}
	if len(found) != 1 || found[0].At.Unix() != at.Unix() || found[0].Input == nil || *found[0].Input.Amount != 700 || found[0].Record == nil {
		t.Errorf("found %+v", found)
	}
}

// TestWhatWasUsedBeforeTheSpan: of what is used now, it is what was not used since the span began, be that in the span or
// after it.
func TestWhatWasUsedBeforeTheSpan(t *testing.T) {
	t.Parallel()
	s := &shelf{used: 10}
	r, set := reader(t, s)
	at := func(minute int, second uint8, outcome decision.Outcome, n uint32) {
		counted := []decision.Counted{{
			Series: decision.Series{Merchant: "mer_a", Operation: "/wallet2/status", Version: string(set.Version()), Record: 2, Live: true, Outcome: outcome},
			Counts: []decision.Count{{Second: second, N: n}},
		}}
		s.parts = append(s.parts, store.DecisionPart{Minute: noon.Add(time.Duration(minute) * time.Minute), Counts: decision.Pack(counted)})
	}
	at(0, 29, decision.Decided, 1) // before the span
	at(0, 30, decision.Decided, 2)
	at(0, 31, decision.Unused, 1)
	at(1, 0, decision.Decided, 3)
	at(7, 59, decision.Decided, 4)
	at(8, 5, decision.Decided, 1) // after what is used was read
	world, err := r.World(t.Context(), noon.Add(30*time.Second), noon.Add(7*time.Minute+59*time.Second), noon.Add(8*time.Minute+5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if world.Decisions != 5 {
		t.Errorf("%d were decided in the span, want 5", world.Decisions)
	}
	for who, want := range map[string]int64{"mer_a": 2, "mer_b": 0} {
		if got := world.Used[impact.Used{Merchant: who, Live: true, Quota: "wallet2", Period: "2026-11"}]; got != want {
			t.Errorf("%s had used %d, want %d", who, got, want)
		}
	}
	if got := world.Used[impact.Used{Merchant: "mer_a", Quota: "wallet2", Period: "2026-11"}] + world.Used[impact.Used{Merchant: "mer_a", Live: true, Quota: "wallet2", Period: "2026-10"}]; got != 0 {
		t.Errorf("in test mode and the month before it was %d", got)
	}
}

// TestAnOrderIsJudgedByItsPrice: by the one that it was bought for, and by the one that it was refused for. Neither has an
// amount of its own.
func TestAnOrderIsJudgedByItsPrice(t *testing.T) {
	t.Parallel()
	const dear = `package gerbang

refusals contains "Too dear." if {
	input.operation.kind == "order"
	input.amount > %d
}

refusals contains "It has an amount." if {
	input.operation.kind == "order"
	input.amount
	not input.quote
}
`
	s := &shelf{}
	r, _ := reader(t, s)
	r.Operations = ppob(t)
	version := func(most int) *policy.Set {
		source := policy.Default()
		source["most.rego"] = fmt.Appendf(nil, dear, most)
		set, err := policy.Compile(t.Context(), source)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	base, dearer := version(500), version(501)
	r.Policy = func(string) *policy.Set { return base }
	rule := decision.Policy(base.Rules()[slices.IndexFunc(base.Rules(), func(r policy.Rule) bool { return r.File == "most.rego" })].Number)
	series := decision.Series{Merchant: "mer_a", Operation: "/ppob/order", Version: string(base.Version()), Record: 2, Live: true}
	refused := series
	refused.Rule, refused.Outcome = rule, decision.Later
	inputs, err := decision.PackInputs([]decision.Input{{At: noon, Series: refused, Quote: map[string]any{"price": int64(501)}}})
	if err != nil {
		t.Fatal(err)
	}
	unused := series
	unused.Outcome = decision.Unused
	counted := []decision.Counted{
		{Series: series, Counts: []decision.Count{{N: 2}}}, {Series: refused, Counts: []decision.Count{{N: 1}}}, {Series: unused, Counts: []decision.Count{{N: 1}}},
	}
	s.parts = []store.DecisionPart{{Minute: noon, Counts: decision.Pack(counted), Inputs: inputs}}
	s.moves = []movement.Movement{{
		Key: movement.Key{Owner: movement.Owner{MerchantID: "mer_a", Mode: "live"}, Kind: "order"}, ID: movement.NewID(), Operation: "/ppob/order",
		Amount: 400, CreatedAt: noon, PolicyVersion: string(base.Version()), Request: []byte(`{"body":{"sku":"xld10","target":"087800001230"}}`),
	}}
	run := func(set *policy.Set) impact.Report {
		t.Helper()
		world, err := r.World(t.Context(), noon, noon.Add(time.Minute), noon.Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		report, err := impact.Run(t.Context(), impact.Candidate{Set: set}, world, r.Past(t.Context(), noon, noon.Add(time.Minute)))
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	if got := run(version(499)); got.Verdict != "equal" || got.Decisions != 2 || got.Unknown != 0 {
		t.Errorf("a bound between the prices: %+v", got)
	}
	if got := run(dearer); got.NewlyAllowed != 1 || got.NewlyDenied != 0 || got.Rupiah != 501 {
		t.Errorf("a bound above the prices: %+v", got)
	}
	if got := run(version(399)); got.NewlyDenied != 1 || got.NewlyAllowed != 0 || got.Rupiah != 400 {
		t.Errorf("a bound below the prices: %+v", got)
	}

	// The default rules refuse what a list of now holds, as the movement's target is in one form.
	r.Lists = func(in policy.AdmitInput) []string {
		if in.Destination == "6287800001230" && in.Product == "xld10" && in.Merchant.ID == "mer_a" {
			return []string{"blocked_destinations"}
		}
		return nil
	}
	if got := run(dearer); got.NewlyDenied != 1 || got.NewlyAllowed != 1 || got.Rupiah != 901 {
		t.Errorf("what is on a list: %+v", got)
	}
}

func ppob(t *testing.T) *catalog.Snapshot {
	t.Helper()
	text, err := os.ReadFile("../../plugins/ppob/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := manifest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	offered, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	return offered
}

// TestASpanIsOfSeconds: it begins and ends within a minute. A transfer that was decided before it and reserved in it counts
// as one of before.
func TestASpanIsOfSeconds(t *testing.T) {
	t.Parallel()
	s := &shelf{}
	r, set := reader(t, s)
	for minute, seconds := range [][]uint8{{9, 10, 59}, {0, 19, 20}} {
		var counted []decision.Counted
		for _, second := range seconds {
			counted = append(counted, decision.Counted{
				Series: decision.Series{Merchant: "mer_a", Operation: catalog.BalancePath, Version: string(set.Version()), Record: 2, Live: true},
				Counts: []decision.Count{{Second: second, N: 1}},
			})
		}
		s.parts = append(s.parts, store.DecisionPart{Minute: noon.Add(time.Duration(minute) * time.Minute), Counts: decision.Pack(counted)})
	}
	for _, second := range []int{9, 10} {
		at := noon.Add(time.Duration(second) * time.Second)
		s.moves = append(s.moves, movement.Movement{
			Key: movement.Key{Owner: movement.Owner{MerchantID: "mer_a", Mode: "live"}, Kind: "transfer"}, ID: movement.NewID(), Operation: "/gone/transfer",
			CreatedAt: at.Add(2 * time.Second), PolicyVersion: string(set.Version()), Request: []byte(`{"body":{}}`),
			DecisionID: decision.NewNamer(r.Key, 1).Name(at, string(set.Version()), "mer_a", true, "/gone/transfer", decision.Admitted).String(),
		})
	}
	var got []string
	for p, err := range r.Past(t.Context(), noon.Add(10*time.Second), noon.Add(80*time.Second)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%d %s %t", p.At.Unix()-noon.Unix(), p.Operation.Path, p.Before))
	}
	want := []string{"9 /gone/transfer true", "10 /balance false", "10 /gone/transfer false", "59 /balance false", "60 /balance false", "79 /balance false"}
	if !slices.Equal(got, want) {
		t.Errorf("read %q, want %q", got, want)
	}
}

// BenchmarkAMillionOfTheLog: a day of a thousand merchants is read and tried by a candidate with other rates.
func BenchmarkAMillionOfTheLog(b *testing.B) {
	s := &shelf{}
	r, set := reader(b, s)
	const merchants, minutes = 1000, 1440
	for minute := range minutes {
		var counted []decision.Counted
		for i := range 700 {
			counted = append(counted, decision.Counted{
				Series: decision.Series{Merchant: fmt.Sprintf("mer_%04d", (i+minute)%merchants), Operation: catalog.BalancePath, Version: string(set.Version()), Record: 2, Live: true},
				Counts: []decision.Count{{Second: uint8(i % 60), N: 1}},
			})
		}
		s.parts = append(s.parts, store.DecisionPart{Minute: noon.Add(time.Duration(minute) * time.Minute), Counts: decision.Pack(counted)})
	}
	source := policy.Default()
	source["night.rego"] = []byte("package gerbang\n\nrefusals contains \"Not at night.\" if input.clock.hour == 3\n")
	candidate, err := policy.Compile(b.Context(), source)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, p := range s.parts {
		bytes += len(p.Counts)
	}
	for b.Loop() {
		world, err := r.World(b.Context(), noon, noon.Add(minutes*time.Minute), noon.Add(minutes*time.Minute))
		if err != nil {
			b.Fatal(err)
		}
		report, err := impact.Run(b.Context(), impact.Candidate{Set: candidate}, world, r.Past(b.Context(), noon, noon.Add(minutes*time.Minute)))
		if err != nil || report.Decisions != 700*minutes || report.NewlyDenied == 0 {
			b.Fatal(report.Decisions, report.NewlyDenied, err)
		}
	}
	b.ReportMetric(float64(bytes)/(700*minutes), "B/decision")
}
