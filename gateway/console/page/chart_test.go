package page

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
)

func TestTicks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		greatest float64
		whole    bool
		want     string
	}{
		{0, true, "[0 1]"}, {0, false, "[0 1]"}, {1, true, "[0 1]"}, {3, true, "[0 1 2 3]"}, {5, true, "[0 1 2 3 4 5]"}, {6, true, "[0 2 4 6]"},
		{11, true, "[0 5 10 15]"}, {99, true, "[0 20 40 60 80 100]"}, {100, false, "[0 20 40 60 80 100]"}, {101, true, "[0 50 100 150]"},
		{0.4, false, "[0 0.1 0.2 0.3 0.4]"}, {0.4, true, "[0 1]"}, {2.5, false, "[0 0.5 1 1.5 2 2.5]"}, {123_456, true, "[0 50000 100000 150000]"},
	} {
		if got := fmt.Sprint(ticks(c.greatest, c.whole)); got != c.want {
			t.Errorf("up to %v, whole %t: %s, want %s", c.greatest, c.whole, got, c.want)
		}
	}
}

// TestChartsAreDrawnToScale: columns stand upon each other, a line has a gap where there is no number, and the table has all.
func TestChartsAreDrawnToScale(t *testing.T) {
	t.Parallel()
	c := Chart{Labels: []string{"a", "b", "c", "d"}, Stacked: true, Whole: true, Series: []Series{
		{Name: "good", Tone: "good", Values: []float64{1000, 0, 3000, 0}}, {Name: "bad", Tone: "bad", Values: []float64{1000, 0, 2000, 0}},
	}}
	d := c.Drawn()
	if len(d.Columns) != 4 || len(d.Up) != 6 || d.Up[5] != (Tick{chartTop, "5.000"}) || d.Up[0].At != d.Foot || len(d.Across) != 4 {
		t.Fatalf("%+v", d)
	}
	whole := d.Foot - d.Top
	for i, want := range []float64{whole / 5, whole / 5, whole * 3 / 5, whole * 2 / 5} {
		if math.Abs(d.Columns[i].Height-want) > 1e-9 {
			t.Errorf("column %d is %v high, want %v", i, d.Columns[i].Height, want)
		}
	}
	if d.Columns[1].Y+d.Columns[1].Height != d.Columns[0].Y || math.Abs(d.Columns[3].Y-d.Top) > 1e-9 {
		t.Errorf("%+v", d.Columns)
	}
	none := math.NaN()
	c = Chart{Labels: c.Labels, Decimals: 1, Series: []Series{{Tone: "good", Values: []float64{none, 50, none, 100}}, {Tone: "bad", Values: []float64{10, 20, none, none}}}}
	if d := c.Drawn(); len(d.Dots) != 2 || len(d.Lines) != 1 || d.Lines[0].Tone != "bad" {
		t.Errorf("%+v", d)
	}
	if got := fmt.Sprint(c.Rows()); got != "[[a \u2013 10.0] [b 50.0 20.0] [c \u2013 \u2013] [d 100.0 \u2013]]" {
		t.Error(got)
	}
	if many := (Chart{Labels: make([]string, 31)}); !many.Empty() || len(many.Drawn().Across) > mostLabels {
		t.Errorf("%d labels", len(many.Drawn().Across))
	}
}

func TestFiguresAreDrawn(t *testing.T) {
	t.Parallel()
	v := &Visit{language: "en", site: &Site{pages: &pages{location: time.UTC}}}
	from := time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC)
	counts := []adminapi.FigureCount{{Status: "PAID", Channel: "qris", Count: 3}, {Status: "FAILED", Count: 1}, {Status: "PENDING", Count: 9}}
	for n := range 5 {
		counts = append(counts, adminapi.FigureCount{Status: "PAID", Channel: fmt.Sprintf("va-%d", n), Count: 1})
	}
	charts := v.FigureCharts(adminapi.Figures{Spans: []adminapi.FigureSpan{
		{From: from, Counts: counts, Timed: 8, MedianMS: 90_000, P95MS: 600_000}, {From: from.AddDate(0, 0, 1), Counts: []adminapi.FigureCount{}},
	}})
	var got string
	for _, c := range charts {
		names := []string{}
		for _, s := range c.Series {
			names = append(names, s.Name+":"+s.Tone)
		}
		got += fmt.Sprintln(c.Y, names, c.Rows())
	}
	want := "Number [PENDING:wait PAID:good FAILED:bad] [[31 Jan 9 8 1] [1 Feb 0 0 0]]\n" +
		"Number [qris:tone-1 va-0:tone-2 va-1:tone-3 va-2:tone-4 others:tone-5] [[31 Jan 3 1 1 1 2] [1 Feb 0 0 0 0 0]]\n" +
		"Percent [Success rate:good] [[31 Jan 88.9] [1 Feb \u2013]]\n" +
		"Minutes [Median:tone-1 95th percentile:tone-2] [[31 Jan 1.5 10.0] [1 Feb \u2013 \u2013]]\n"
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
