package ledger_test

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
)

func TestDaysAreJakartas(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Asia/Jakarta")
	if err != nil {
		t.Fatal(err)
	}
	of := func(day, hour, minute int) time.Time { return time.Date(2026, 7, day, hour, minute, 0, 0, zone) }
	for at, end := range map[time.Time]time.Time{
		of(5, 0, 0):                        of(6, 0, 0),
		of(5, 23, 59):                      of(6, 0, 0),
		of(6, 0, 0).Add(-time.Microsecond): of(6, 0, 0),
		of(6, 0, 0):                        of(7, 0, 0),
	} {
		if got := ledger.DayEnd(at); !got.Equal(end) {
			t.Errorf("the day of %v ends at %v", at, got)
		}
	}
	for now, end := range map[time.Time]time.Time{
		of(6, 1, 59):  of(5, 0, 0),
		of(6, 2, 0):   of(6, 0, 0),
		of(6, 23, 59): of(6, 0, 0),
	} {
		if got := ledger.Closed(now); !got.Equal(end) {
			t.Errorf("at %v, %v is closed", now, got)
		}
	}
}
