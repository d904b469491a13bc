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

// Schedule says when something that failed is tried again: after the ten waits of the
// beginning daily, until it is too old.
type Schedule struct {
	// Lasts is how old something gets before it is given up, whatever was tried
	// meanwhile: also what was held back ends.
	Lasts time.Duration
}

// Over tells whether something that was begun at a time is too old to be tried again.
func (s Schedule) Over(begun, now time.Time) bool { return !now.Before(begun.Add(s.Lasts)) }

// Next is when to try again what was begun at a time and has failed so often; the last
// try comes when its time is over. It is false when there is no further one. Random is
// [math/rand/v2.Int64N], or what a test puts in its place.
func (s Schedule) Next(attempts int, begun, now time.Time, random func(int64) int64) (time.Time, bool) {
	if s.Over(begun, now) {
		return time.Time{}, false
	}
	wait := day
	if attempts = max(attempts, 1); attempts <= len(waits) {
		wait = waits[attempts-1]
	}
	spread := int64(wait / jitterParts)
	next := now.Add(wait + time.Duration(random(2*spread+1)-spread))
	if end := begun.Add(s.Lasts); next.After(end) {
		next = end
	}
	return next, true
}
