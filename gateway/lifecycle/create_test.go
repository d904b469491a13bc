package lifecycle

import (
	"math"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// TestNextAttempt: a drawn one lies above the last one and stays in its column, any
// other is the next number.
func TestNextAttempt(t *testing.T) {
	t.Parallel()
	highest := New(Dependencies{})
	highest.Draw = func(n int) int { return n - 1 }
	for _, last := range []int{1, 2, attemptSpan, math.MaxInt32 - attemptSpan, math.MaxInt32 - 3, math.MaxInt32 - 2, math.MaxInt32 - 1} {
		next := highest.nextAttempt(movement.Rules{DrawsAttempts: true}, last)
		if next <= last || next > math.MaxInt32 || next > last+attemptSpan {
			t.Errorf("after %d comes %d", last, next)
		}
		if next := highest.nextAttempt(movement.Rules{}, last); next != last+1 {
			t.Errorf("undrawn, after %d comes %d", last, next)
		}
	}
	drawn := map[int]bool{}
	for range 100 {
		drawn[New(Dependencies{}).nextAttempt(movement.Rules{DrawsAttempts: true}, 1)] = true
	}
	if len(drawn) < 50 {
		t.Errorf("of a hundred next attempts %d differ", len(drawn))
	}
}
