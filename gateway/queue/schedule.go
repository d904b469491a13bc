package queue

import "time"

const (
	day = 24 * time.Hour

	// jitterParts is the part of a wait by which it is made shorter or longer,
	// so that what failed together does not come back together.
	jitterParts = 10
)

// waits follow the first attempts.
var waits = []time.Duration{
	5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

// Schedule says when something that failed is tried again.
type Schedule struct {
	// Days is how many daily attempts follow the ten waits of the beginning. They
	// are counted, not timed, so that a gateway that was down takes none away.
	Days int
}

// Next is when to try again after so many failed attempts. It is false when there
// is no further attempt. Random is [math/rand/v2.Int64N], or what a test puts in
// its place.
func (s Schedule) Next(attempts int, now time.Time, random func(int64) int64) (time.Time, bool) {
	if attempts > len(waits)+s.Days {
		return time.Time{}, false
	}
	wait := day
	if attempts = max(attempts, 1); attempts <= len(waits) {
		wait = waits[attempts-1]
	}
	spread := int64(wait / jitterParts)
	return now.Add(wait + time.Duration(random(2*spread+1)-spread)), true
}
