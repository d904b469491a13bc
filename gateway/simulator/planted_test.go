package simulator_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// by names the invariant that must find a bug, if others would find it, too.
var by = map[simulator.Bug]string{
	simulator.ReroutedUnknown:  "one name can be paid at one provider",
	simulator.ForgottenRestore: "one name can be paid at one provider",
	simulator.OverdrawnQuota:   "no quota is passed",
	simulator.KeptQuota:        "what was never sent gives its quota back",
	simulator.RepeatedTransfer: "equal transfers without a reference are one",
	simulator.UnopenedRestore:  "no money is moved before a restored database is opened",
}

// pinned holds, for each bug, a seed whose history shows it.
var pinned = filepath.Join("testdata", "bugs.json")

// TestFindsPlantedBugs proves that the simulator finds each planted bug. The change tier plays
// the pinned history of each. The long tier, and -update, search 1,000 histories.
func TestFindsPlantedBugs(t *testing.T) {
	t.Parallel()
	seedOf := map[simulator.Bug]uint64{}
	if text, err := os.ReadFile(pinned); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(text, &seedOf); err != nil {
		t.Fatal(err)
	}
	search := *update || tier.IsLong()
	found := shown{seeds: map[simulator.Bug]uint64{}}
	t.Cleanup(func() { found.write(t) })
	for _, bug := range simulator.Bugs {
		t.Run(string(bug), func(t *testing.T) {
			t.Parallel()
			if seed, known := seedOf[bug]; known && shows(t, bug, seed) {
				found.add(bug, seed)
				if !tier.IsLong() {
					return
				}
			} else if !search {
				t.Fatalf("the history of seed %d does not show it any more: run -update, which searches for another one", seed)
			}
			for seed := range uint64(1000) {
				if shows(t, bug, seed) {
					found.add(bug, seed)
					return
				}
			}
			t.Error("no history shows it")
		})
	}
}

// shows plays a history with a bug, and reports whether its invariant breaks.
func shows(t *testing.T, bug simulator.Bug, seed uint64) bool {
	t.Helper()
	for _, v := range simulator.Run(t, seed, simulator.Options{Bug: bug}).Violations {
		if by[bug] == "" || by[bug] == v.Invariant {
			t.Logf("found at seed %d: %s: %s", seed, v.Invariant, v.Detail)
			return true
		}
	}
	return false
}

// shown holds the seeds that a run found.
type shown struct {
	mu    sync.Mutex
	seeds map[simulator.Bug]uint64
}

func (s *shown) add(bug simulator.Bug, seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seeds[bug] = seed
}

// write writes the seeds of a whole search for -update.
func (s *shown) write(t *testing.T) {
	if !*update || t.Failed() || len(s.seeds) != len(simulator.Bugs) {
		return
	}
	text, err := json.MarshalIndent(s.seeds, "", "  ")
	if err == nil {
		err = os.WriteFile(pinned, append(text, '\n'), 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}
