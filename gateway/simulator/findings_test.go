package simulator_test

import (
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

// finding is a fault of today's behaviour: the first seed that shows it, the invariant
// that breaks, and what happens. All seeds of the usual run stand in testdata.
type finding struct {
	seed      uint64
	invariant string
	text      string
}

// findings are those that are known. What ends one takes it out of this table; no
// invariant that is not in it may break anywhere.
var findings = []finding{}

// unknown are the violations that are no known finding.
func unknown(violations []simulator.Violation) []simulator.Violation {
	return slices.DeleteFunc(slices.Clone(violations), func(v simulator.Violation) bool {
		return slices.ContainsFunc(findings, func(f finding) bool { return f.invariant == v.Invariant })
	})
}

// report fails where a history breaks what no finding explains.
func report(t *testing.T, seed uint64, result simulator.Result) {
	t.Helper()
	for _, v := range unknown(result.Violations) {
		t.Errorf("seed %d: %s: %s; -run TestSeed -seed=%d -v shows all of it", seed, v.Invariant, v.Detail, seed)
	}
}

// TestFindingsStand plays the first seed of each finding.
func TestFindingsStand(t *testing.T) {
	t.Parallel()
	for _, f := range findings {
		result := simulator.Run(t, f.seed, simulator.Options{})
		if !slices.ContainsFunc(result.Violations, func(v simulator.Violation) bool { return v.Invariant == f.invariant }) {
			t.Errorf("seed %d does not show any more that %q", f.seed, f.text)
		}
	}
}
