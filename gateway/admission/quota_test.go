package admission_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// quotaRules count a status three times: by two quotas that may be used up, and one
// that is never reached. Nothing is allowed to the tier never.
const quotaRules = `package gerbang

admit := {"allow": input.merchant.tier != "never", "reasons": []}

limits := {
	"rates": [{"name": "default", "rate_per_second": 1, "burst": 100}],
	"quotas": [{"name": name, "limit": limit} | some name, limit in {"a": 3, "b": 2, "c": 9}],
}
`

// tally counts in memory.
type tally struct {
	used map[limit.Usage]int64
	err  error
}

func newTally() *tally { return &tally{used: map[limit.Usage]int64{}} }

func (c *tally) Reserve(_ context.Context, u limit.Usage, most int64) (limit.Reservation, error) {
	if c.err != nil && u.Name == "b" {
		return limit.Reservation{}, c.err
	}
	if c.used[u] >= most {
		return limit.Reservation{}, nil
	}
	c.used[u]++
	return limit.Reservation{OK: true, Remaining: most - c.used[u]}, nil
}

func (c *tally) Left(_ context.Context, u limit.Usage, most int64) (int64, error) {
	if c.err != nil && u.Name == "b" {
		return 0, c.err
	}
	return most - c.used[u], nil
}

func (c *tally) Release(_ context.Context, u limit.Usage) { c.used[u]-- }

// admitted asks for all that a new request must pass.
func admitted(
	t testing.TB, a *admission.Admission, now time.Time, id tenants.Identity, op *catalog.Operation, body catalog.Document,
) (admission.Ticket, error) {
	t.Helper()
	ticket, err := a.Admit(t.Context(), now, id, op, body)
	if err != nil {
		return ticket, err
	}
	return a.Reserve(t.Context(), now, ticket, id, op)
}

// String tells what is used, by quota, mode and period.
func (c *tally) String() string {
	var all []string
	for u, n := range maps.All(c.used) {
		all = append(all, fmt.Sprintf("%s/%s/%s=%d", u.Name, u.Mode, u.Period, n))
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestQuotas(t *testing.T) {
	t.Parallel()
	op, id := operation(t, "/payments/status"), identity(t, "scale", tenants.Active)
	used := newTally()
	var log bytes.Buffer
	a := admission.New(compile(t, quotaRules), limit.New(), used, admission.Config{Log: slog.New(slog.NewTextHandler(&log, nil))})
	for remaining := range slices.Values([]int64{1, 0}) {
		ticket, err := admitted(t, a, noon, id, op, nil)
		if err != nil || len(ticket.Quotas) != 3 || *ticket.Remaining != remaining || ticket.RateLimit == "" {
			t.Fatalf("%+v, %v", ticket, err)
		}
	}
	ticket, err := admitted(t, a, noon, id, op, nil)
	f := fault.From(err)
	if f.Code != fault.QuotaExceeded || !f.RetryAt.Equal(time.Date(2026, 11, 30, 17, 0, 0, 0, time.UTC)) ||
		f.Message != "The quota b is used up: 2 calls until 2026-11-30T17:00:00Z." {
		t.Errorf("got %v at %s", err, f.RetryAt)
	}
	if ticket.Quotas != nil || ticket.Remaining != nil || !strings.Contains(log.String(), ticket.DecisionID) {
		t.Errorf("the ticket %+v, the log %s", ticket, &log)
	}
	if waits, err := a.Admit(t.Context(), noon, id, op, nil); err != nil || len(waits.Limits.Quotas) != 3 || waits.Quotas != nil {
		t.Errorf("before it is counted: %+v, %v", waits, err)
	}
	if got := used.String(); got != "a/test/2026-11=2 b/test/2026-11=2 c/test/2026-11=2" {
		t.Errorf("used %s", got)
	}
	admittedOnly, err := a.Admit(t.Context(), noon, id, op, nil)
	if left := a.Remaining(t.Context(), noon, admittedOnly, id); err != nil || *left != 0 {
		t.Errorf("%d are left, %v", *left, err)
	}
	live := id
	live.Mode = tenants.Live
	if left := a.Remaining(t.Context(), noon, admittedOnly, live); *left != 2 {
		t.Errorf("%d are left in live mode", *left)
	}
	used.err = errors.New("gone")
	if left := a.Remaining(t.Context(), noon, admittedOnly, live); left != nil || !strings.Contains(log.String(), "gone") {
		t.Errorf("%d are left, by who knows", *left)
	}
	used.err = nil
	if got := used.String(); got != "a/test/2026-11=2 b/test/2026-11=2 c/test/2026-11=2" {
		t.Errorf("to ask has used %s", got)
	}
	ticket, err = admitted(t, a, noon, live, op, nil)
	if err != nil || used.used[limit.Usage{Key: limit.Key{Merchant: "mer_scale", Mode: "live", Name: "b"}, Period: "2026-11"}] != 1 {
		t.Errorf("test mode uses what is live mode's: %v, used %s", err, used)
	}
	a.Release(t.Context(), ticket)
	if got := used.String(); !strings.Contains(got, "a/live/2026-11=0 a/test/2026-11=2 b/live/2026-11=0") {
		t.Errorf("after the release: %s", got)
	}
}

// TestWhatIsNotAdmittedUsesNoQuota: the policy comes first, then the rates, then
// the quotas.
func TestWhatIsNotAdmittedUsesNoQuota(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/status")
	down := newTally()
	down.err = errors.New("the database is away")
	slow := strings.Replace(quotaRules, `"burst": 100`, `"burst": 1`, 1)
	for name, c := range map[string]struct {
		rules, tier string
		used        *tally
		want        []fault.Code
		left        string
	}{
		"denied":          {quotaRules, "never", newTally(), []fault.Code{fault.PolicyDenied}, ""},
		"too fast":        {slow, "scale", newTally(), []fault.Code{"", fault.RateLimited}, "a/test/2026-11=1 b/test/2026-11=1 c/test/2026-11=1"},
		"can't be judged": {quotaRules, "scale", down, []fault.Code{fault.Internal}, "a/test/2026-11=0"},
	} {
		a := admission.New(compile(t, c.rules), limit.New(), c.used, admission.Config{})
		for _, want := range c.want {
			if _, err := admitted(t, a, noon, identity(t, tenants.Tier(c.tier), tenants.Active), op, nil); code(err) != want {
				t.Errorf("%s: %v, want %q", name, err, want)
			}
		}
		if got := c.used.String(); got != c.left {
			t.Errorf("%s: used %q, want %q", name, got, c.left)
		}
	}
}

func TestMonthsOfTheMerchant(t *testing.T) {
	t.Parallel()
	op := operation(t, "/payments/status")
	active := compile(t, quotaRules)
	last := time.Date(2026, 10, 31, 16, 30, 0, 0, time.UTC) // 23:30 in Jakarta
	for zone, want := range map[string]struct{ period, end string }{
		"":                 {"2026-10", "2026-10-31T17:00:00Z"},
		"Asia/Jayapura":    {"2026-11", "2026-11-30T15:00:00Z"},
		"America/New_York": {"2026-10", "2026-11-01T04:00:00Z"},
		"Mars/Olympus":     {"2026-10", "2026-10-31T17:00:00Z"},
		"Local":            {"2026-10", "2026-10-31T17:00:00Z"},
	} {
		id := identity(t, "scale", tenants.Active)
		merchant := id.Account.Merchant()
		merchant.Labels = map[string]string{"time_zone": zone}
		var err error
		if id.Account, err = tenants.NewAccount(merchant, nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		a := admission.New(active, limit.New(), newTally(), admission.Config{})
		for range 2 {
			ticket, err := admitted(t, a, last, id, op, nil)
			if err != nil || ticket.Quotas[0].Period != want.period {
				t.Errorf("%q: %+v, %v, want %s", zone, ticket.Quotas, err, want.period)
			}
		}
		_, err = admitted(t, a, last, id, op, nil)
		if end := fault.From(err).RetryAt.UTC().Format(time.RFC3339); end != want.end {
			t.Errorf("%q: until %s, want %s", zone, end, want.end)
		}
	}
}

func TestDefaultQuotas(t *testing.T) {
	t.Parallel()
	used := newTally()
	a := admission.New(compile(t, ""), limit.New(), used, admission.Config{Location: time.UTC})
	op := *operation(t, "/payments/status")
	op.Path, op.Provider = "/wallet1/inquiry", "wallet1"
	ticket, err := admitted(t, a, noon, identity(t, "starter", tenants.Active), &op, nil)
	if err != nil || *ticket.Remaining != 9_999 || used.String() != "name_inquiry/test/2026-11=1" {
		t.Errorf("%+v, %v, used %s", ticket, err, used)
	}
}

func BenchmarkAdmitWithAQuota(b *testing.B) {
	op, id := operation(b, "/payments/status"), identity(b, "scale", tenants.Active)
	a := admission.New(compile(b, strings.NewReplacer(": 3,", ": 1000000000,", ": 2,", ": 1000000000,", ": 9}", ": 1000000000}").Replace(quotaRules)),
		limit.New(), newTally(), admission.Config{})
	now := noon
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		if _, err := admitted(b, a, now, id, op, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestWhatIsCounted: each request once, and beside that what became of it.
func TestWhatIsCounted(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

admit := {"allow": count(no) == 0, "reasons": no}

no contains "Too much." if input.amount > 1000

no contains "Too dear." if input.quote.price > 500

limits := {
	"rates": [{"name": "default", "rate_per_second": 1, "burst": 6}],
	"quotas": [{"name": "q", "limit": 2} | input.operation.path == "/payments/create"],
}
`
	log := decision.NewLog()
	active := compile(t, rules)
	a := admission.New(active, limit.New(), newTally(), admission.Config{Decisions: log})
	create, status, id := operation(t, "/payments/create"), operation(t, "/payments/status"), identity(t, "scale", tenants.Active)
	ask := func(op *catalog.Operation, text string) admission.Ticket {
		t.Helper()
		ticket, err := a.Admit(t.Context(), noon, id, op, body(t, text))
		if err == nil && len(ticket.Limits.Quotas) > 0 {
			ticket, _ = a.Reserve(t.Context(), noon, ticket, id, op)
		}
		return ticket
	}
	first := ask(create, `{"amount": 100}`)
	a.Refused(t.Context(), first, fmt.Errorf("quote: %w", a.Reconsider(t.Context(), noon, first, id, create, body(t, `{"amount": 100}`), map[string]any{"price": int64(501)})))
	a.Release(t.Context(), first)                          // nothing was sent
	ask(create, `{"amount": 1002}`)                        // too much
	ask(create, `{"amount": 200}`)                         // uses one
	ask(create, `{"amount": 1001}`)                        // too much
	ask(create, `{"amount": 300}`)                         // uses the last one
	a.Release(t.Context(), ask(create, `{"amount": 300}`)) // over the quota, and a replay
	ask(status, `{}`)                                      // no quota counts it
	replay, err := a.Admit(t.Context(), noon, id, create, body(t, `{"amount": 200}`))
	if err != nil {
		t.Fatal(err)
	}
	a.Release(t.Context(), replay) // before it is counted
	if _, err = a.Spend(t.Context(), noon, id, create, errInvalid); code(err) != fault.RateLimited {
		t.Error("the seventh of six")
	}
	if _, err = a.Spend(t.Context(), noon.Add(time.Second), id, create, errInvalid); code(err) != fault.InvalidRequest {
		t.Error(err)
	}
	counts := map[string]uint32{}
	for _, m := range log.Take() {
		for _, c := range m.Counted {
			if c.Merchant != "mer_scale" || c.Version != string(active.Set().Version()) || c.Live {
				t.Errorf("counted %+v", c)
			}
			for _, of := range c.Counts {
				counts[fmt.Sprintf("%s %d %v", c.Operation, c.Outcome, c.Rule)] += of.N
			}
		}
		var amounts []int64
		for _, in := range m.Inputs {
			amounts = append(amounts, *in.Amount)
		}
		if !slices.Equal(amounts, []int64{100, 1002, 1001, 300}) || m.Inputs[0].Quote["price"] != int64(501) || m.Inputs[0].Outcome != decision.Later {
			t.Errorf("the inputs %+v", m.Inputs)
		}
	}
	want := map[string]uint32{
		"/payments/create 0 none": 4, "/payments/create 0 rule 2": 2, "/payments/create 0 quota 1": 1, "/payments/status 0 none": 1,
		"/payments/create 1 rate 1": 1, "/payments/create 1 none": 1,
		"/payments/create 2 none": 2, "/payments/create 2 quota 1": 1, "/payments/create 3 rule 3": 1,
	}
	if !maps.Equal(counts, want) {
		t.Errorf("counted %v, want %v", counts, want)
	}
}

// BenchmarkAdmitCounted is an admission with the log of decisions and without it.
func BenchmarkAdmitCounted(b *testing.B) {
	op, id := operation(b, "/payments/create"), identity(b, "scale", tenants.Active)
	document := body(b, `{"amount": 10000, "payer_email": "a@example.com"}`)
	for name, log := range map[string]*decision.Log{"off": nil, "on": decision.NewLog()} {
		b.Run(name, func(b *testing.B) {
			a := admission.New(compile(b, ""), limit.New(), nil, admission.Config{Decisions: log})
			now := noon
			for b.Loop() {
				now = now.Add(time.Millisecond * 10)
				if _, err := a.Admit(b.Context(), now, id, op, document); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
