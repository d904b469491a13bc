package simulator_test

import (
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

var oneSeed = flag.Uint64("seed", 0, "the seed of the history that TestSeed plays and prints")

// TestSeed plays one history and prints what happened in it.
func TestSeed(t *testing.T) {
	t.Parallel()
	result := simulator.Run(t, *oneSeed, simulator.Options{})
	t.Logf("%s\n%d steps", strings.Join(result.Trace, "\n"), result.Steps)
	for _, v := range result.Violations {
		t.Logf("%s: %s", v.Invariant, v.Detail)
	}
}

// TestSameSeed holds a seed to one history.
func TestSameSeed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		first, second := simulator.Run(t, seed, simulator.Options{}), simulator.Run(t, seed, simulator.Options{})
		if slices.Equal(first.Trace, second.Trace) {
			continue
		}
		for i, line := range first.Trace {
			if i >= len(second.Trace) || second.Trace[i] != line {
				t.Errorf("seed %d: line %d: %s\nand then\n%s", seed, i, line, second.Trace[min(i, len(second.Trace)-1)])
				break
			}
		}
	}
}
