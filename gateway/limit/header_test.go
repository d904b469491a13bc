package limit

import (
	"math"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
)

// members reads a field as a stranger's parser does and answers each member's name and two parameters.
func members(t *testing.T, value []byte, first, second string) [][3]any {
	t.Helper()
	list, err := httpsfv.UnmarshalList([]string{string(value)})
	if err != nil {
		t.Fatalf("%s is no structured list: %v", value, err)
	}
	var all [][3]any
	for _, member := range list {
		item, ok := member.(httpsfv.Item)
		if !ok || len(item.Params.Names()) != 2 {
			t.Fatalf("%s holds %v, want items with two parameters", value, member)
		}
		a, _ := item.Params.Get(first)
		b, _ := item.Params.Get(second)
		all = append(all, [3]any{item.Value, a, b})
	}
	return all
}

func TestFieldsReadAsTheDraftHasThem(t *testing.T) {
	t.Parallel()
	v := New().Allow(start, shop, Rate{PerSecond: 5, Burst: 10})
	if got := string(AppendPolicy(nil, "default", v)); got != `"default";q=10;w=2` {
		t.Errorf("RateLimit-Policy: %s", got)
	}
	if got := string(AppendLimit(nil, "default", v)); got != `"default";r=9;t=1` {
		t.Errorf("RateLimit: %s", got)
	}
}

func TestAStrangerReadsTheFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		name   string
		v      Verdict
		parsed string
		q, w   int64
		r, t   int64
	}{
		"ordinary":     {"default", Verdict{Limit: 10, Remaining: 9, Window: 2 * time.Second, Reset: time.Millisecond}, "default", 10, 2, 9, 1},
		"exact":        {"a.b-c_d", Verdict{Limit: 1, Window: time.Second, Reset: time.Second}, "a.b-c_d", 1, 1, 0, 1},
		"just above":   {"x", Verdict{Limit: 1, Window: time.Second + 1, Reset: time.Second + 1}, "x", 1, 2, 0, 2},
		"a fast rate":  {"x", Verdict{Limit: 1, Remaining: 1, Window: time.Microsecond}, "x", 1, 1, 1, 0},
		"for ever":     {"x", Verdict{Limit: math.MaxInt64, Remaining: math.MaxInt64, Window: math.MaxInt64, Reset: math.MaxInt64}, "x", maxInteger, 9223372037, maxInteger, 9223372037},
		"odd names":    {`a"b\c`, Verdict{Window: 1}, `a"b\c`, 0, 1, 0, 0},
		"not even it":  {"Bü\n\x7f", Verdict{Window: 1}, "B????", 0, 1, 0, 0},
		"without name": {"", Verdict{Window: 1}, "", 0, 1, 0, 0},
	} {
		policy := members(t, AppendPolicy(AppendPolicy(nil, "first", c.v), c.name, c.v), "q", "w")
		if want := [3]any{c.parsed, c.q, c.w}; len(policy) != 2 || policy[1] != want {
			t.Errorf("%s: the policy reads as %v, want %v second", name, policy, want)
		}
		limit := members(t, AppendLimit(AppendLimit(nil, "first", c.v), c.name, c.v), "r", "t")
		if want := [3]any{c.parsed, c.r, c.t}; len(limit) != 2 || limit[1] != want {
			t.Errorf("%s: the limit reads as %v, want %v second", name, limit, want)
		}
	}
}

func BenchmarkFields(b *testing.B) {
	v := New().Allow(start, shop, Rate{PerSecond: 5, Burst: 10})
	buf := make([]byte, 0, 64)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendPolicy(buf[:0], "default", v)
		buf = AppendLimit(buf[:0], "default", v)
	}
}
