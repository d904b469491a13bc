package page

import "testing"

// TestAtMost: what was counted to its bound may be more.
func TestAtMost(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0", 49: "49", 50: "50+"} {
		if got := AtMost(n, 50); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}
