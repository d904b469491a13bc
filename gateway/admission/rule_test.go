package admission_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestExplanationsAreBounded: a reason that tells the amount is new each time, and still
// only so many refusals of a second are evaluated again. What is refused stays refused.
func TestExplanationsAreBounded(t *testing.T) {
	t.Parallel()
	const rules = `package gerbang

admit := {"allow": count(no) == 0, "reasons": no}

no contains sprintf("%d is too much.", [input.amount]) if input.amount > 1000

no contains "Not for this tier." if input.merchant.tier == "starter"

limits := {"rates": [{"name": "default", "rate_per_second": 1000, "burst": 1000}], "quotas": []}
`
	log := decision.NewLog()
	a := admission.New(compile(t, rules), limit.New(), nil, admission.Config{Decisions: log})
	create := operation(t, "/payments/create")
	refuse := func(now time.Time, tier tenants.Tier, amount int) {
		t.Helper()
		_, err := a.Admit(t.Context(), now, identity(t, tier, tenants.Active), create, body(t, fmt.Sprintf(`{"amount": %d}`, amount)))
		if fault.From(err).Code != fault.PolicyDenied {
			t.Fatalf("%d: %v", amount, err)
		}
	}
	counted := func() map[string]uint32 {
		counts := map[string]uint32{}
		for _, m := range log.Take() {
			for _, c := range m.Counted {
				for _, of := range c.Counts {
					counts[fmt.Sprint(c.Rule)] += of.N
				}
			}
		}
		return counts
	}
	refuse(noon, "starter", 1)
	for i := range 149 {
		refuse(noon, "scale", 2000+i)
	}
	refuse(noon, "starter", 1) // known
	if got, want := counted(), map[string]uint32{"rule 3": 2, "rule 2": 99, fmt.Sprint(decision.Unnamed): 50}; !maps.Equal(got, want) {
		t.Errorf("in one second: %v, want %v", got, want)
	}
	refuse(noon.Add(time.Second), "scale", 9000)
	if got, want := counted(), map[string]uint32{"rule 2": 1}; !maps.Equal(got, want) {
		t.Errorf("in the next: %v, want %v", got, want)
	}
}
