package simulator_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

var (
	oneSeed = flag.Uint64("seed", 0, "the seed of the history that TestSeed plays and prints")
	seeds   = flag.Uint64("seeds", usual, "how many histories TestHistories plays")
	update  = flag.Bool("update", false, "write the seeds that show findings to testdata")
)

const (
	// usual is how many histories a run of all tests plays, and of how many testdata
	// tells which show findings.
	usual = 200
	// sample: one in so many histories of a longer run is played twice.
	sample = 50
)

var listed = filepath.Join("testdata", "findings.txt")

// TestSeed plays one history and prints what happened in it.
func TestSeed(t *testing.T) {
	t.Parallel()
	result := simulator.Run(t, *oneSeed, simulator.Options{})
	t.Logf("%s\n%d steps", strings.Join(result.Trace, "\n"), result.Steps)
	report(t, *oneSeed, result)
}

// TestSameSeed holds a seed to one history, also where the database is away so often
// that writes are tried again and again.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		options := simulator.Options{Outages: int(seed%2) * 60}
		same(t, seed, options, simulator.Run(t, seed, options))
	}
}

// same plays a history again, and fails where it is another.
func same(t *testing.T, seed uint64, options simulator.Options, first simulator.Result) {
	t.Helper()
	second := simulator.Run(t, seed, options)
	if slices.Equal(first.Trace, second.Trace) {
		return
	}
	at := 0
	for at < min(len(first.Trace), len(second.Trace)) && first.Trace[at] == second.Trace[at] {
		at++
	}
	next := func(r simulator.Result) string { return strings.Join(r.Trace[at:min(at+3, len(r.Trace))], "\n") }
	t.Errorf("seed %d differs from itself after %d lines: something goes by chance or by the order of goroutines:\n%s\nand\n%s", seed, at, next(first), next(second))
}

// TestHistories plays many histories. Those that show findings are exactly the listed
// ones, as far as the list tells.
func TestHistories(t *testing.T) {
	t.Parallel()
	found, began := shown{seeds: map[string][]uint64{}}, time.Now()
	t.Cleanup(func() {
		t.Logf("%d histories in %v", *seeds, time.Since(began).Round(time.Second))
		found.compare(t)
	})
	all := played()
	lanes := runtime.GOMAXPROCS(0)
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < len(all); i += lanes {
				seed := all[i]
				result := simulator.Run(t, seed, simulator.Options{})
				report(t, seed, result)
				found.add(seed, result)
				if *seeds > usual && seed%sample == 0 {
					same(t, seed, simulator.Options{}, result)
				}
			}
		})
	}
}

// played are the seeds of the run, and those of rare findings.
func played() (all []uint64) {
	for seed := range *seeds {
		all = append(all, seed)
	}
	for _, f := range findings {
		if f.rare >= *seeds {
			all = append(all, f.rare)
		}
	}
	return all
}

// shown are the seeds that break invariants.
type shown struct {
	mu    sync.Mutex
	seeds map[string][]uint64
}

func (s *shown) add(seed uint64, result simulator.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range result.Violations {
		if of := s.seeds[v.Invariant]; !slices.Contains(of, seed) {
			s.seeds[v.Invariant] = append(of, seed)
		}
	}
}

// compare compares the seeds that show findings with the listed ones.
func (s *shown) compare(t *testing.T) {
	for invariant, of := range s.seeds {
		t.Logf("%s: %d histories", invariant, len(of))
	}
	if *seeds < usual {
		return
	}
	for _, f := range findings {
		if len(s.seeds[f.invariant]) == 0 {
			t.Errorf("no history breaks %q any more (%s): if you have ended that, delete its row in findings_test.go", f.invariant, f.text)
		}
	}
	got := s.text()
	if *update {
		if err := os.WriteFile(listed, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(listed)
	if err != nil || got != string(want) {
		t.Errorf("other seeds show findings than those of %s (%v). What you changed made it so, or has moved the draws: "+
			"go test ./gateway/simulator -run TestHistories -update writes this:\n%s", listed, err, got)
	}
}

// text lists, by invariant, the seeds of the usual run and those of rare findings.
func (s *shown) text() string {
	var text strings.Builder
	for _, invariant := range slices.Sorted(maps.Keys(s.seeds)) {
		var of []string
		for _, seed := range slices.Sorted(slices.Values(s.seeds[invariant])) {
			if seed < usual || slices.ContainsFunc(findings, func(f finding) bool { return f.rare == seed }) {
				of = append(of, fmt.Sprint(seed))
			}
		}
		if len(of) > 0 {
			text.WriteString(invariant + ": " + strings.Join(of, " ") + "\n")
		}
	}
	return text.String()
}
