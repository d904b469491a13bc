package simulator_test

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

var (
	oneSeed = flag.Uint64("seed", 0, "the seed of the history that TestSeed plays and prints")
	seeds   = flag.Uint64("seeds", 10_000, "how many histories TestHistories plays in the long tier")
	update  = flag.Bool("update", false, "write the seeds that show planted bugs to testdata")
)

const (
	// usual is how many histories the change tier plays: half of them the same each time,
	// half of them drawn by the commit.
	usual = 100
	// drawnFrom is how many seeds a commit's histories are drawn from.
	drawnFrom = 100_000
	// repeated: the long tier plays one in so many histories twice.
	repeated = 50
)

// TestSeed plays one history and prints what happened in it.
func TestSeed(t *testing.T) {
	t.Parallel()
	result := simulator.Run(t, *oneSeed, simulator.Options{})
	t.Logf("%s\n%d steps", strings.Join(result.Trace, "\n"), result.Steps)
	report(t, *oneSeed, result)
}

// TestSameSeed proves that a seed always plays the same history, also where the database
// is away so often that writes are tried again and again.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	most := uint64(6)
	if tier.IsLong() {
		most = 20
	}
	for seed := range most {
		options := simulator.Options{Outages: int(seed%2) * 60}
		same(t, seed, options, simulator.Run(t, seed, options))
	}
}

// same plays a history again, and fails if it differs.
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
	t.Errorf("seed %d differs from itself after %d lines: something depends on chance or on the order of goroutines:\n%s\nand\n%s", seed, at, next(first), next(second))
}

// TestHistories plays many histories. None may break an invariant.
func TestHistories(t *testing.T) {
	t.Parallel()
	all, began := played(t), time.Now()
	t.Cleanup(func() { t.Logf("%d histories in %v", len(all), time.Since(began).Round(time.Second)) })
	lanes := runtime.GOMAXPROCS(0)
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			for i := lane; i < len(all); i += lanes {
				result := simulator.Run(t, all[i], simulator.Options{})
				report(t, all[i], result)
				if tier.IsLong() && i%repeated == 0 {
					same(t, all[i], simulator.Options{}, result)
				}
			}
		})
	}
}

// played lists the seeds of this run.
func played(t *testing.T) []uint64 {
	t.Helper()
	if tier.IsLong() {
		return upTo(0, *seeds)
	}
	return append(upTo(0, usual/2), tier.Sample(t, upTo(usual/2, drawnFrom), usual/2)...)
}

func upTo(from, to uint64) (all []uint64) {
	for seed := from; seed < to; seed++ {
		all = append(all, seed)
	}
	return all
}

// report fails if a history broke an invariant.
func report(t *testing.T, seed uint64, result simulator.Result) {
	t.Helper()
	for _, v := range result.Violations {
		t.Errorf("seed %d: %s: %s; -run TestSeed -seed=%d -v shows all of it", seed, v.Invariant, v.Detail, seed)
	}
}
