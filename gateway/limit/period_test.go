package limit

import (
	"testing"
	"time"
)

func TestMonthsAreOfTheirPlace(t *testing.T) {
	t.Parallel()
	jayapura := time.FixedZone("WIT", 9*60*60)
	newYork, err := time.LoadLocation("America/New_York") // where clocks are set in March
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		now       time.Time
		name, end string
	}{
		{time.Date(2026, 11, 1, 0, 0, 0, 0, jayapura), "2026-11", "2026-12-01T00:00:00+09:00"},
		{time.Date(2026, 10, 31, 14, 59, 59, 999_999_999, time.UTC).In(jayapura), "2026-10", "2026-11-01T00:00:00+09:00"},
		{time.Date(2026, 10, 31, 15, 0, 0, 0, time.UTC).In(jayapura), "2026-11", "2026-12-01T00:00:00+09:00"},
		{time.Date(2026, 10, 31, 15, 0, 0, 0, time.UTC), "2026-10", "2026-11-01T00:00:00Z"},
		{time.Date(2026, 12, 31, 23, 59, 59, 0, time.UTC), "2026-12", "2027-01-01T00:00:00Z"},
		{time.Date(2028, 1, 31, 0, 0, 0, 0, time.UTC), "2028-01", "2028-02-01T00:00:00Z"},
		{time.Date(2026, 3, 31, 0, 0, 0, 0, newYork), "2026-03", "2026-04-01T00:00:00-04:00"},
	} {
		p := Month(c.now)
		if end := p.End.Format(time.RFC3339); p.Name != c.name || end != c.end {
			t.Errorf("%s is in %s until %s, want %s until %s", c.now, p.Name, end, c.name, c.end)
		}
		if next := Month(p.End); next.Name <= p.Name || Month(p.End.Add(-1)).Name != p.Name {
			t.Errorf("%s does not end where %s begins", p.Name, next.Name)
		}
	}
}
