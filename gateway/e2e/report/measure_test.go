package report_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// turn is what a contestant did in one turn.
type turn struct {
	took    []time.Duration // each request, sorted
	elapsed time.Duration
	used    map[string]time.Duration // processor time by role
	holds   map[string]int64         // bytes of memory by role, at its end
}

// contestant is what is measured, and its turns.
type contestant struct {
	name   string
	loop   loop
	roles  func() map[string]time.Duration // what its processes have used so far
	holds  func() map[string]int64         // what memory they hold; nil for a floor
	server []string                        // the roles that are its own
	turns  []turn
	beside []*contestant // that took turns with it, itself among them
}

// figure is one number of a turn.
type figure func(turn) float64

func perSecond(t turn) float64 { return float64(len(t.took)) / t.elapsed.Seconds() }

// quantile is a time in milliseconds that this part of the requests does not exceed.
func quantile(q float64) figure {
	return func(t turn) float64 {
		return float64(t.took[min(int(q*float64(len(t.took))), len(t.took)-1)].Microseconds()) / 1000
	}
}

// processor is what the roles used for a request, in microseconds.
func processor(roles ...string) figure {
	return func(t turn) float64 {
		var sum time.Duration
		for _, role := range roles {
			sum += t.used[role]
		}
		return float64(sum.Microseconds()) / float64(len(t.took))
	}
}

// memory is what the roles hold, in MiB.
func memory(roles ...string) figure {
	return func(t turn) float64 {
		var sum int64
		for _, role := range roles {
			sum += t.holds[role]
		}
		return float64(sum) / (1 << 20)
	}
}

// all are a figure of each turn.
func (c *contestant) all(of figure) []float64 {
	values := make([]float64, len(c.turns))
	for i, t := range c.turns {
		values[i] = of(t)
	}
	return values
}

func (c *contestant) median(of figure) float64 { return median(c.all(of)) }

// noise is how far the turns lie apart, as a part of their median.
func (c *contestant) noise(of figure) float64 {
	values := c.all(of)
	return (slices.Max(values) - slices.Min(values)) / median(values)
}

// beside is the median of the ratios of turns that followed each other.
func beside(a, b *contestant, ofA, ofB figure) float64 {
	ratios := make([]float64, min(len(a.turns), len(b.turns)))
	for i := range ratios {
		ratios[i] = ofA(a.turns[i]) / ofB(b.turns[i])
	}
	return median(ratios)
}

// turned is what took turns with it under a name, or under that name again; nil for
// nothing.
func (c *contestant) turned(name string) *contestant {
	for _, other := range c.beside {
		if other.name == name || other.name == name+" again" {
			return other
		}
	}
	return nil
}

// median is the middle of the values, the mean of both where there are two.
func median(values []float64) float64 {
	sorted, half := slices.Sorted(slices.Values(values)), len(values)/2
	if len(sorted)%2 == 0 {
		return (sorted[half-1] + sorted[half]) / 2
	}
	return sorted[half]
}

// metric reads a value of a benchmark's line in the output of go test, or of a line that
// has nothing else.
func metric(output, unit string) (float64, error) {
	for line := range strings.Lines(output) {
		fields := strings.Fields(line)
		if at := slices.Index(fields, unit); at > 0 && (at == 1 || strings.HasPrefix(line, "Benchmark")) {
			return strconv.ParseFloat(fields[at-1], 64)
		}
	}
	return 0, fmt.Errorf("no benchmark's line has %s:\n%s", unit, output)
}

func TestFigures(t *testing.T) {
	t.Parallel()
	turnOf := func(requests int, each, elapsed, used time.Duration) turn {
		one := turn{elapsed: elapsed, used: map[string]time.Duration{"gateway": used, "plugin": used / 2}, holds: map[string]int64{"gateway": 3 << 20, "plugin": 1 << 19}}
		for i := range requests {
			one.took = append(one.took, each*time.Duration(i+1))
		}
		return one
	}
	fast := &contestant{turns: []turn{
		turnOf(100, time.Millisecond, time.Second, 10*time.Millisecond),
		turnOf(300, time.Millisecond, time.Second, 30*time.Millisecond),
		turnOf(200, time.Millisecond, time.Second, 60*time.Millisecond),
	}}
	slow := &contestant{turns: []turn{
		turnOf(50, time.Millisecond, time.Second, 10*time.Millisecond),
		turnOf(100, time.Millisecond, time.Second, 10*time.Millisecond),
		turnOf(50, time.Millisecond, 2*time.Second, 10*time.Millisecond),
	}}
	for _, c := range []struct {
		what      string
		got, want float64
	}{
		{"requests a second", fast.median(perSecond), 200},
		{"their noise", fast.noise(perSecond), 1},
		{"p50", quantile(0.5)(fast.turns[0]), 51},
		{"p99", quantile(0.99)(fast.turns[0]), 100},
		{"p100", quantile(1)(fast.turns[0]), 100},
		{"processor time a request", fast.median(processor("gateway")), 100},
		{"that of two roles", fast.median(processor("gateway", "plugin")), 150},
		{"memory", fast.median(memory("gateway", "plugin")), 3.5},
		{"that of nobody", fast.median(processor("database")), 0},
		{"the ratio of turns", beside(fast, slow, perSecond, perSecond), 3},
		{"of an even number", median([]float64{4, 1, 2, 3}), 2.5},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

func TestMetric(t *testing.T) {
	t.Parallel()
	output := "goos: linux\nBenchmarkDelivery/backlog/0_bad-2 \t 1\t2140000000 ns/op\t 4669 deliveries/s\t 12 B/op\nok\n"
	if got, err := metric(output, "deliveries/s"); err != nil || got != 4669 {
		t.Errorf("%v, %v", got, err)
	}
	if got, err := metric("--- FAIL: deliveries/s\n", "deliveries/s"); err == nil {
		t.Errorf("%v of no benchmark", got)
	}
}
