package tier

import (
	"slices"
	"testing"
)

func TestPick(t *testing.T) {
	t.Parallel()
	cases := make([]int, 100)
	for i := range cases {
		cases[i] = i
	}
	quiet := func(string, ...any) {}
	first := pick(cases, 10, "a commit", quiet)
	if len(first) != 10 || !slices.IsSorted(first) || len(slices.Compact(slices.Clone(first))) != 10 {
		t.Errorf("the sample is %v, want 10 different cases in their order", first)
	}
	if again := pick(cases, 10, "a commit", quiet); !slices.Equal(first, again) {
		t.Errorf("the same seed drew %v, then %v", first, again)
	}
	seen := map[int]bool{}
	for commit := range 100 {
		for _, c := range pick(cases, 10, string(rune('a'+commit)), quiet) {
			seen[c] = true
		}
	}
	if len(seen) < 95 {
		t.Errorf("samples of 100 commits hold only %d of 100 cases", len(seen))
	}
}
