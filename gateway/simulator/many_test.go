package simulator_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/simulator"
)

func TestMany(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("MANY"))
	if n == 0 {
		t.Skip()
	}
	byInv := map[string]int{}
	began := time.Now()
	steps := 0
	for seed := range uint64(n) {
		r := simulator.Run(t, seed, simulator.Options{})
		steps += r.Steps
		for _, v := range r.Violations {
			byInv[v.Invariant]++
			if byInv[v.Invariant] <= 6 && len(unknown([]simulator.Violation{v})) > 0 {
				t.Logf("%d %s: %s", seed, v.Invariant, v.Detail)
			}
		}
	}
	t.Log(byInv, time.Since(began), steps)
}
