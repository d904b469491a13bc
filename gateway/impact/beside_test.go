package impact_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/impact"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// evening is when the requests of the tests begin: the day and the month end within them.
var evening = time.Date(2026, 11, 30, 16, 45, 0, 0, time.UTC) // 23:45 in Jakarta

const (
	create   = "/payments/create"
	status   = "/payments/status"
	transfer = "/wallet1/transfer/wallet"
)

// shop is a policy whose figures a test changes.
const shop = `package gerbang

admit := {"allow": count(refusals) == 0, "reasons": refusals}

refusals contains "Not active." if not input.merchant.status == "active"

refusals contains "Too much." if input.amount > 900000

refusals contains "No QR codes." if input.fields.type == "none"

refusals contains "Not after midnight." if {
	input.operation.kind == "transfer"
	input.clock.hour == 3
}

limits := {
	"rates": [{"name": "default", "rate_per_second": 2, "burst": 10}],
	"quotas": [{"name": "reads", "limit": 100} | input.operation.path == "/payments/status"],
	"transfers": {"day": {"amount": 14000000}},
}
`

func compile(t testing.TB, changes ...string) *policy.Set {
	t.Helper()
	rules := shop
	for i := 0; i+1 < len(changes); i += 2 {
		if !strings.Contains(rules, changes[i]) {
			t.Fatalf("the policy has no %q", changes[i])
		}
		rules = strings.Replace(rules, changes[i], changes[i+1], 1)
	}
	set, err := policy.Compile(t.Context(), policy.Source{"shop.rego": []byte(rules), "data.json": []byte(`{"tiers": {"t": {"rate_per_second": 1, "burst": 1}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func operations(t testing.TB) *catalog.Snapshot {
	t.Helper()
	var manifests []*manifest.Manifest
	for _, name := range []string{"payments", "wallet1"} {
		text, err := os.ReadFile("../../plugins/" + name + "/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		m, err := manifest.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, m)
	}
	s, err := catalog.Build(manifests)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// request is one of the requests that are sent again under each policy.
type request struct {
	at     time.Time
	who    int
	path   string
	amount int64
	fails  bool // a transfer that fails 30 s later
	replay bool
	wrong  bool // its body does not fit the schema
}

// traffic is the same for the same seed: steady merchants, and one that comes in bursts.
func traffic(seed uint64, most int) []request {
	random := rand.New(rand.NewPCG(seed, 1))
	var all []request
	for i := range most {
		r := request{
			at:  evening.Add(time.Duration(random.Int64N(int64(30 * time.Minute)))),
			who: random.IntN(4), path: []string{create, status, status, transfer}[random.IntN(4)], amount: 1000 + random.Int64N(1_000_000),
		}
		if r.who == 3 { // all within some seconds of each minute
			r.at = r.at.Truncate(time.Minute).Add(time.Duration(random.Int64N(int64(2 * time.Second))))
		}
		r.fails, r.replay = r.path == transfer && random.IntN(5) == 0, r.path == create && random.IntN(9) == 0
		if r.who == 3 && r.path == create { // and sends half of it again
			r.replay = random.IntN(2) == 0
		}
		r.wrong = i%11 == 0
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b request) int { return a.at.Compare(b.at) })
	return all
}

// gate is admission with what is behind it, as far as it counts.
type gate struct {
	*testing.T
	admission *admission.Admission
	log       *decision.Log
	key       decision.Key
	offered   *catalog.Snapshot
	accounts  []tenants.Identity
	quotas    map[limit.Usage]int64
	days      map[string]int64
	back      map[time.Time][]func()
	moves     []impact.Move
	set       *policy.Set
}

func newGate(t *testing.T, set *policy.Set, status tenants.Status) *gate {
	t.Helper()
	g := &gate{
		T: t, log: decision.NewLog(), key: decision.NewKey([]byte("key")), offered: operations(t), quotas: map[limit.Usage]int64{},
		days: map[string]int64{}, back: map[time.Time][]func(){}, set: set,
	}
	for i := range 4 {
		m := tenants.Merchant{ID: tenants.MerchantID("mer_" + strconv.Itoa(i)), Name: "Toko", Tier: "t", Status: tenants.Active, Version: 1}
		if i == 0 {
			m.Status = status
		}
		if i == 1 { // where the month and the day end two hours earlier; the hours that rules see are the gateway's
			m.Labels = map[string]string{tenants.LabelTimeZone: "Asia/Jayapura"}
		}
		account, err := tenants.NewAccount(m, nil, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.accounts = append(g.accounts, tenants.Identity{Account: account, Mode: tenants.Live})
	}
	g.admission = admission.New(policy.NewActive(set), limit.New(), g, admission.Config{Evaluation: time.Hour, Namer: decision.NewNamer(g.key, 1), Decisions: g.log})
	return g
}

func (g *gate) Reserve(_ context.Context, u limit.Usage, most int64) (limit.Reservation, error) {
	if g.quotas[u] >= most {
		return limit.Reservation{}, nil
	}
	g.quotas[u]++
	return limit.Reservation{OK: true}, nil
}

func (g *gate) Release(_ context.Context, u limit.Usage) { g.quotas[u]-- }

func (g *gate) Left(context.Context, limit.Usage, int64) (int64, error) { return 0, nil }

// send sends a request and returns what refused it, "" where nothing did.
func (g *gate) send(r request) string {
	g.Helper()
	for at, undo := range g.back {
		if !at.After(r.at) {
			for _, one := range undo {
				one()
			}
			delete(g.back, at)
		}
	}
	op, _ := g.offered.ByPath(r.path)
	id := g.accounts[r.who]
	id.Key.Scopes = tenants.AllScopes()
	refusal := admission.Access(id, op)
	if refusal == nil && r.wrong {
		refusal = fault.New(fault.InvalidRequest, "The request is invalid.")
	}
	if refusal != nil {
		_, err := g.admission.Spend(g.Context(), r.at, id, op, refusal)
		return g.refused(err)
	}
	body := catalog.Document{}
	if r.path != status {
		body["amount"] = json.Number(strconv.FormatInt(r.amount, 10))
	}
	ticket, err := g.admission.Admit(g.Context(), r.at, id, op, body)
	if err == nil && len(ticket.Limits.Quotas) > 0 {
		ticket, err = g.admission.Reserve(g.Context(), r.at, ticket, id, op)
	}
	if r.replay { // whatever is decided, it has its answer
		g.admission.Release(g.Context(), ticket)
		return ""
	}
	if err != nil {
		return g.refused(err)
	}
	if r.path == transfer {
		err = g.payOut(r, ticket)
	}
	if err != nil {
		g.admission.Refused(g.Context(), ticket, err)
		g.admission.Release(g.Context(), ticket)
		return g.refused(err)
	}
	if op.Money() {
		g.move(r, ticket, op, body)
	}
	return ""
}

func (g *gate) payOut(r request, ticket admission.Ticket) error {
	day := strconv.Itoa(r.who) + r.at.In(ticket.Zone).Format(time.DateOnly)
	limits := ticket.Limits.Transfers.Day
	if limits.Amount != nil && g.days[day]+r.amount > *limits.Amount {
		return fault.New(fault.PolicyDenied, "Too much today.").Because(&movement.LimitError{Name: "out.amount"})
	}
	if limits.Count != nil && g.days["n"+day]+1 > *limits.Count {
		return fault.New(fault.PolicyDenied, "Too many today.").Because(&movement.LimitError{Name: "out.count"})
	}
	count := func(sign int64) {
		g.days[day] += sign * r.amount
		g.days["n"+day] += sign
	}
	count(1)
	if r.fails {
		at := r.at.Add(30 * time.Second)
		g.back[at] = append(g.back[at], func() { count(-1) })
	}
	return nil
}

func (g *gate) move(r request, ticket admission.Ticket, op *catalog.Operation, body catalog.Document) {
	facts, err := g.key.Open(ticket.DecisionID, r.at)
	if err != nil {
		g.Fatal(err)
	}
	m := impact.Move{At: facts.At, Reserved: r.at, Merchant: string(g.accounts[r.who].Account.ID()), Live: true, Operation: r.path, Version: ticket.PolicyVersion}
	m.Input = impact.Input{Amount: &r.amount, Fields: op.PolicyFields(op.WithDefaults(body))}
	if r.fails {
		m.FailedAt = r.at.Add(30 * time.Second)
	}
	g.moves = append(g.moves, m)
}

// refused is a refusal in a word.
func (g *gate) refused(err error) string {
	f := fault.From(err)
	if f.Code == fault.PolicyDenied {
		return f.Message
	}
	return string(f.Code)
}

func (g *gate) sendAll(all []request) []string {
	out := make([]string, len(all))
	for i, r := range all {
		out[i] = g.send(r)
	}
	return out
}

func (g *gate) known(record *policy.Merchant) impact.Known {
	return impact.Known{
		Operation: func(path string) impact.Operation {
			op, _ := g.offered.ByPath(path)
			return impact.Operation{
				Operation: policy.Operation{Path: op.Path, Kind: string(admission.KindOf(op)), Provider: op.Provider},
				Reads:     op.AmountField() != "" || len(op.Fields) > 0, Money: op.Money(), Transfer: op.Kind == manifest.Transfer,
				MustBeNamed: op.Unnamed,
			}
		},
		Lists: func(string) []string { return nil },
		Record: func(merchant string, version int64) *policy.Merchant {
			for _, id := range g.accounts {
				if string(id.Account.ID()) == merchant && version == 1 {
					m := admission.RecordOf(id.Account.Merchant())
					return &m
				}
			}
			return record
		},
	}
}

// past is what the log and the movements know.
func (g *gate) past(minutes []decision.Minute) iter.Seq2[impact.Past, error] {
	return func(yield func(impact.Past, error) bool) {
		for _, m := range minutes {
			var moves []impact.Move
			for _, move := range g.moves {
				if move.At.Truncate(time.Minute).Equal(m.Start) {
					moves = append(moves, move)
				}
			}
			for _, p := range impact.PastOf(m.Start, m.Counted, m.Inputs, moves, g.known(nil)) {
				if !yield(p, nil) {
					return
				}
			}
		}
	}
}

func (g *gate) world() impact.World {
	return impact.World{
		Base: func(version string) *policy.Set {
			if version == string(g.set.Version()) {
				return g.set
			}
			return nil
		},
		Zone: func(m *policy.Merchant) *time.Location {
			return admission.ZoneOf(tenants.Merchant{Labels: m.Labels}, nil)
		},
		Clock: admission.ZoneOf(tenants.Merchant{}, nil),
	}
}

// TestImpactBesideTheTruth: what impact says of a candidate is what happens when the candidate is in force and the same
// requests are sent again.
func TestImpactBesideTheTruth(t *testing.T) {
	t.Parallel()
	all := traffic(7, 2000)
	before := newGate(t, compile(t), tenants.Active)
	was := before.sendAll(all)
	for i := range all { // of what was refused nobody knows whether it would have failed
		all[i].fails = all[i].fails && was[i] == ""
	}
	minutes := before.log.Take()
	for _, c := range []struct {
		name    string
		changes []string
		status  tenants.Status
		verdict string
		rates   bool // that they differ, so counts may by a burst for each merchant
		free    bool // what is refused frees tokens, or what is allowed takes them: so counts may differ of who is slowed
	}{
		{name: "a comment", changes: []string{"package gerbang", "# New.\npackage gerbang"}, verdict: "equal"},
		{name: "a lower amount", changes: []string{"900000", "500000"}, free: true},
		{name: "a higher amount", changes: []string{"900000", "950000"}, free: true},
		{name: "a bound by a function", changes: []string{
			`refusals contains "Too much." if input.amount > 900000`,
			"refusals contains bound(500000)\n\nbound(most) := \"None.\" if input.amount < 1\n\nelse := \"Too much.\" if input.amount > most",
		}, free: true},
		{name: "a field", changes: []string{`"none"`, `"payment_link"`}, free: true},
		{name: "an hour", changes: []string{"hour == 3", "hour == 0"}, free: true},
		{name: "a lower quota", changes: []string{"100", "70"}, verdict: "stricter"},
		{name: "a higher quota", changes: []string{"100", "115"}, verdict: "looser"},
		{name: "another quota", changes: []string{
			`{"name": "reads", "limit": 100} | input.operation.path == "/payments/status"`, `{"name": "creates", "limit": 40} | input.operation.path == "/payments/create"`,
		}, verdict: "mixed"},
		{name: "a lower daily amount", changes: []string{"14000000", "6000000"}},
		{name: "a higher daily amount", changes: []string{"14000000", "17000000"}},
		{name: "no limit of a day", changes: []string{`"day": {"amount": 14000000}`, ``}, verdict: "looser"},
		{name: "a number of a day", changes: []string{`{"amount": 14000000}`, `{"amount": 14000000, "count": 20}`}},
		{name: "a lower rate", changes: []string{`2, "burst": 10`, `1, "burst": 5`}, rates: true},
		{name: "a higher rate", changes: []string{`2, "burst": 10`, `3, "burst": 20`}, rates: true},
		{name: "a rate of each operation", changes: []string{`2, "burst": 10`, `1, "burst": 5, "per": "operation"`}, rates: true},
		{name: "rate, quota, rule and day", changes: []string{
			`2, "burst": 10`, `1.5, "burst": 8`, "100", "70", "900000", "800000", "14000000", "10000000",
		}, rates: true},
		{name: "suspended", status: tenants.Suspended, verdict: "stricter"},
		{name: "suspended, by rules that do not look", status: tenants.Suspended, verdict: "stricter", changes: []string{
			`refusals contains "Not active." if not input.merchant.status == "active"`, "",
		}},
	} {
		candidate := impact.Candidate{Set: compile(t, c.changes...)}
		after := newGate(t, candidate.Set, cmp.Or(c.status, tenants.Active))
		if c.status != "" {
			candidate.Record = func(m *policy.Merchant) *policy.Merchant {
				if m.ID != "mer_0" {
					return m
				}
				changed := *m
				changed.Status = string(c.status)
				return &changed
			}
		}
		is := after.sendAll(all)
		report, err := impact.Run(t.Context(), candidate, before.world(), before.past(minutes))
		if err != nil {
			t.Fatal(err)
		}
		truth, told := differences(all, was, is), toldOf(report)
		if c.rates || c.free {
			withinABurst(t, c.name, truth, told)
		}
		if c.free {
			slowed := func(key string, _ int64) bool { return strings.HasPrefix(key, "mer_3 ") }
			maps.DeleteFunc(truth, slowed)
			maps.DeleteFunc(told, slowed)
		}
		if !c.rates && !maps.Equal(truth, told) {
			t.Errorf("%s: impact tells %v,\nwhat happens is %v", c.name, told, truth)
		}
		if report.Verdict != cmp.Or(c.verdict, report.Verdict) || c.verdict != "equal" && len(truth) == 0 {
			t.Errorf("%s: it is %s, want %s", c.name, report.Verdict, c.verdict)
		}
		if report.Unknown != 0 || report.Decisions != int64(len(all)) {
			t.Errorf("%s: of %d decisions %d are unknown", c.name, report.Decisions, report.Unknown)
		}
		again, err := impact.Run(t.Context(), candidate, before.world(), before.past(minutes))
		if first, second := written(t, report), written(t, again); err != nil || first != second {
			t.Errorf("%s: the same past tells otherwise: %v\n%s\n%s", c.name, err, first, second)
		}
	}
}

// TestTheSamePolicyChangesNothing: neither for a merchant that is suspended and goes on calling.
func TestTheSamePolicyChangesNothing(t *testing.T) {
	t.Parallel()
	before := newGate(t, compile(t), tenants.Suspended)
	was := before.sendAll(traffic(7, 1000))
	if !slices.Contains(was, string(fault.MerchantSuspended)) || !slices.Contains(was, string(fault.InvalidRequest)) || !slices.Contains(was, string(fault.RateLimited)) {
		t.Fatal("nothing was refused for one of the causes")
	}
	report, err := impact.Run(t.Context(), impact.Candidate{Set: before.set}, before.world(), before.past(before.log.Take()))
	if err != nil || report.Verdict != "equal" || len(report.Rows) != 0 || report.Decisions != int64(len(was)) {
		t.Errorf("the same policy is %s: %+v, %v", report.Verdict, report.Rows, err)
	}
}

// TestWhatMustBeNamed: an operation that an approval alone has brought is refused by each policy that does not name its path.
func TestWhatMustBeNamed(t *testing.T) {
	t.Parallel()
	all := traffic(7, 1000)
	silent := compile(t)
	names := compile(t, `refusals contains "Too much."`, `refusals contains "None." if {
	input.operation.path == "/wallet1/transfer/wallet"
	input.amount < 1
}

refusals contains "Too much."`)
	other := compile(t, "package gerbang", "# New.\npackage gerbang")
	send := func(set *policy.Set) (*gate, []string) {
		g := newGate(t, set, tenants.Active)
		g.offered.MustBeNamed("wallet1")
		return g, g.sendAll(all)
	}
	for name, c := range map[string]struct {
		before, after *policy.Set
		verdict       string
		rule          string
	}{
		"named by neither":  {silent, other, "equal", ""},
		"named no more":     {names, silent, "stricter", "the policy does not name this operation"},
		"named from now on": {silent, names, "looser", "the policy does not name this operation"},
		"named as it was":   {names, names, "equal", ""},
		"refused as it was": {silent, silent, "equal", ""},
	} {
		before, was := send(c.before)
		_, is := send(c.after)
		minutes := before.log.Take()
		report, err := impact.Run(t.Context(), impact.Candidate{Set: c.after}, before.world(), before.past(minutes))
		if err != nil {
			t.Fatal(err)
		}
		onlyTransfers := func(of map[string]int64) map[string]int64 { // what is allowed takes tokens from the others
			maps.DeleteFunc(of, func(key string, _ int64) bool { return !strings.Contains(key, transfer) })
			return of
		}
		if truth, told := onlyTransfers(differences(all, was, is)), onlyTransfers(toldOf(report)); c.verdict == "equal" && report.Verdict != "equal" ||
			(c.verdict != "equal") != (len(truth) > 0) || len(truth) != len(told) {
			t.Errorf("%s: impact tells %s, %v,\nwhat happens is %v", name, report.Verdict, told, truth)
		}
		if c.rule != "" && !slices.ContainsFunc(report.Rows, func(r impact.Row) bool { return r.Rule == c.rule && r.Operation == transfer }) {
			t.Errorf("%s: no row tells why: %+v", name, report.Rows)
		}
		for i := range minutes { // nothing of the refused ones was kept
			minutes[i].Inputs = nil
		}
		report, err = impact.Run(t.Context(), impact.Candidate{Set: c.after}, before.world(), before.past(minutes))
		if err != nil || c.verdict == "looser" && report.Unknown == 0 || c.verdict == "equal" && (report.Verdict != "equal" || report.Unknown != 0) {
			t.Errorf("%s, without inputs: %s, %d unknown, %v", name, report.Verdict, report.Unknown, err)
		}
	}
}

// written is a report as it is printed.
func written(t *testing.T, r impact.Report) string {
	t.Helper()
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestARateOfEachKey: with which key a request came is not noted. What one bucket for all keys admits is admitted, and what
// it refuses is not known.
func TestARateOfEachKey(t *testing.T) {
	t.Parallel()
	all := traffic(7, 1000)
	before := newGate(t, compile(t), tenants.Active)
	was := before.sendAll(all)
	slower := []string{`2, "burst": 10`, `1, "burst": 5`}
	denied := func(report impact.Report) (n int64) {
		for _, row := range report.Rows {
			n += row.NewlyDenied
		}
		return n
	}
	minutes := before.log.Take()
	run := func(changes ...string) impact.Report {
		report, err := impact.Run(t.Context(), impact.Candidate{Set: compile(t, changes...)}, before.world(), before.past(minutes))
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	of := run(slower...)
	each := run(slower[0], slower[1]+`, "per": "key"`)
	if denied(of) < 20 || of.Unknown != 0 || denied(each) != 0 || each.Unknown < denied(of) {
		t.Errorf("one rate denies %d, %d unknown; one of each key %d, %d unknown", denied(of), of.Unknown, denied(each), each.Unknown)
	}
	if n := slices.IndexFunc(was, func(code string) bool { return code != "" }); n < 0 {
		t.Error("nothing was refused before")
	}
}

// differences are the requests that are decided otherwise, by merchant and operation.
func differences(all []request, was, is []string) map[string]int64 {
	out := map[string]int64{}
	for i, r := range all {
		key := "mer_" + strconv.Itoa(r.who) + " " + r.path
		switch {
		case was[i] == "" && is[i] != "":
			out[key+" denied"]++
		case was[i] != "" && is[i] == "":
			out[key+" allowed"]++
		}
	}
	return out
}

func toldOf(report impact.Report) map[string]int64 {
	out := map[string]int64{}
	add := func(key string, n int64) {
		if n > 0 {
			out[key] += n
		}
	}
	for _, row := range report.Rows {
		add(row.Merchant+" "+row.Operation+" denied", row.NewlyDenied)
		add(row.Merchant+" "+row.Operation+" allowed", row.NewlyAllowed)
	}
	return out
}

// withinABurst compares what is denied in all, merchant by merchant.
func withinABurst(t *testing.T, name string, truth, told map[string]int64) {
	t.Helper()
	const burst = 20
	for who := range 4 {
		net := func(of map[string]int64) (n int64) {
			for key, count := range of {
				if strings.HasPrefix(key, "mer_"+strconv.Itoa(who)+" ") {
					if strings.HasSuffix(key, " allowed") {
						count = -count
					}
					n += count
				}
			}
			return n
		}
		if off := net(truth) - net(told); off < -burst || off > burst {
			t.Errorf("%s: merchant %d: impact tells %d more denied, what happens is %d", name, who, net(told), net(truth))
		} else if who == 3 {
			t.Logf("%s: merchant %d: impact tells %d more denied, what happens is %d", name, who, net(told), net(truth))
		}
	}
}

var errCut = errors.New("cut")

// TestAnErrorOfThePastIsTold: half a past gives no report.
func TestAnErrorOfThePastIsTold(t *testing.T) {
	t.Parallel()
	past := func(yield func(impact.Past, error) bool) { yield(impact.Past{}, errCut) }
	if _, err := impact.Run(t.Context(), impact.Candidate{Set: compile(t)}, impact.World{}, past); !errors.Is(err, errCut) {
		t.Errorf("got %v", err)
	}
}
