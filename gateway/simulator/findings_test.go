package simulator_test

import (
	"slices"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

// finding is a fault of today's behaviour: the invariant that breaks, and what happens.
// Which seeds show it stands in testdata.
type finding struct {
	invariant string
	text      string
	rare      uint64 // a seed beyond the usual run that shows it, where that does not
}

// findings are those that are known. What ends one takes it out of this table, and has
// TestHistories -update write testdata; no invariant that is not in it may break
// anywhere.
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
