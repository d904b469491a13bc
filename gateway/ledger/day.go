package ledger

import "time"

const (
	// Late is how long after its own time a transaction is written that no snapshot
	// counts: whoever adds up reads it by itself. Almost none is.
	Late = time.Hour
	// ClosesAfter is how long after its end a day is closed, so that its snapshot
	// counts everything that was not late. The last such transaction is written Late
	// after the day's end. From there on the hour that is left is for its commit, which
	// is through within seconds, and for servers' clocks, which differ by less.
	ClosesAfter = 2 * time.Hour

	day = 24 * time.Hour
	// jakarta is how far ahead of UTC midnight comes there, in summer too.
	jakarta = 7 * time.Hour
)

// DayEnd is the end of the ledger's day that a time lies in. Days are Jakarta's, as
// the months of accounts are.
func DayEnd(at time.Time) time.Time {
	return at.UTC().Add(jakarta).Truncate(day).Add(day - jakarta)
}

// Closed is the end of the last day that is closed at a time.
func Closed(now time.Time) time.Time { return DayEnd(now.Add(-ClosesAfter)).Add(-day) }
