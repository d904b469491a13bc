// Package tier says which tests run for each change and which run long. `make test` runs the tests of the change
// tier (go test -short), `make test-long` runs all of them. A test of the long tier begins with Long. A matrix runs a
// sample of its cases in the change tier, another one for each commit, and all of them in the long tier.
//
// TIERS.md counts the tests of both tiers. This package is for tests only.
package tier

import (
	"cmp"
	"hash/fnv"
	"os"
	"slices"
	"strconv"
	"testing"
)

// SampleVariable names what a run's samples are drawn by: the Makefile sets it to the commit.
const SampleVariable = "GERBANG_TEST_SAMPLE"

// Long puts a test or a benchmark's check into the long tier. The reason says what the test proves beyond the change
// tier.
func Long(t testing.TB, reason string) {
	t.Helper()
	if testing.Short() {
		t.Skip("long tier: " + reason)
	}
}

// IsLong reports whether the long tier runs, for tests that do more of the same in it.
func IsLong() bool { return !testing.Short() }

// Sample returns n of the cases in the change tier, in their order, and all of them in the long tier. The sample
// depends on the commit and on the test's name alone, so it can be drawn again with the seed that Sample logs.
func Sample[T any](t testing.TB, cases []T, n int) []T {
	t.Helper()
	if IsLong() || n >= len(cases) {
		return cases
	}
	return pick(cases, n, seed()+t.Name(), t.Logf)
}

func pick[T any](cases []T, n int, by string, logf func(string, ...any)) []T {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(draw(by, a), draw(by, b)) })
	chosen := slices.Clone(order[:n])
	slices.Sort(chosen)
	sample := make([]T, n)
	for i, at := range chosen {
		sample[i] = cases[at]
	}
	logf("%d of %d cases; %s=%s draws them again", n, len(cases), SampleVariable, seed())
	return sample
}

// draw is a case's number in the lot of a seed.
func draw(by string, i int) uint64 {
	h := fnv.New64a()
	h.Write([]byte(by + "/" + strconv.Itoa(i)))
	// FNV's high bits hardly depend on the last byte.
	x := h.Sum64()
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 33
	return x
}

func seed() string { return cmp.Or(os.Getenv(SampleVariable), "none") }
