package simulator_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

// by names the invariant that must find a bug, where others would find it, too.
var by = map[simulator.Bug]string{
	simulator.ReroutedUnknown:  "one name can be paid at one provider",
	simulator.ForgottenRestore: "one name can be paid at one provider",
	simulator.OverdrawnQuota:   "no quota is passed",
	simulator.KeptQuota:        "what was never sent gives its quota back",
	simulator.UnopenedRestore:  "no money is moved before a restored database is opened",
}

// TestFindsPlantedBugs shows that each of the bugs is found within 1,000 histories, and
// tells at which seed.
func TestFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	for _, bug := range simulator.Bugs {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(1000) {
				for _, v := range unknown(simulator.Run(t, seed, simulator.Options{Bug: bug}).Violations) {
					if by[bug] != "" && by[bug] != v.Invariant {
						continue
					}
					t.Logf("found at seed %d: %s: %s", seed, v.Invariant, v.Detail)
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}
