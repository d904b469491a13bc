package limit

import (
	"math"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit/leasing"
)

// leaseTime is how much of the rate a lease is.
const leaseTime = 100 * time.Millisecond

// sizeOf is how many tokens a lease has.
func sizeOf(r Rate) float64 {
	return max(1, math.Floor(min(r.PerSecond*leaseTime.Seconds(), float64(r.Burst))))
}

// leased is a replica's part in a bucket that all replicas share. The shard's lock guards
// it.
type leased struct {
	key    Key
	whole  Rate    // that the part of a replica without a lease is of
	held   float64 // tokens of leases
	credit float64 // that may be owed besides, until the question under way is answered
	owed   float64 // admitted on credit, or spent before the bucket was shared
	late   float64 // admitted of the replica's part, while nobody asked the bucket
	sent   float64 // of what is owed, with the question under way
	after  float64 // of what is late
	left   float64 // in the bucket, as far as known
	since  time.Time
	next   time.Time // until when the bucket is known to be empty
	asking bool      // a question waits or is under way
}

// at is what the bucket would have if no other replica took anything.
func (l *leased) at(now time.Time, r Rate) float64 {
	return min(float64(r.Burst), l.left+r.PerSecond*max(0, now.Sub(l.since).Seconds()))
}

// change takes over a rate that was changed. When the bucket has something again is not
// known then, so it is asked.
func (l *leased) change(now time.Time, before, r Rate) {
	l.left, l.since, l.next = l.at(now, before), now, now
	l.held = min(l.held, sizeOf(r))
}

// take takes a token of the lease, or one on credit, and tells whether the bucket is to be
// asked. Credit is this replica's part of what the bucket should have, and one at least
// once it should have any: who waits as told is admitted, and an idle bucket's burst need
// not wait for the database. It is paid with the next question, so what several replicas
// admit for the same token is missing later.
func (l *leased) take(now time.Time, r Rate, replicas int) (ok, ask bool) {
	if l.asking && l.left >= 1 { // of what comes back during a long question, this replica's part
		l.credit = min(l.credit+max(0, now.Sub(l.since).Seconds())*r.PerSecond/float64(replicas), float64(r.Burst))
	}
	l.left, l.since = l.at(now, r), now
	if !l.asking && !now.Before(l.next) && l.held-1 < sizeOf(r)/2 {
		l.asking, ask = true, true
		l.lend(replicas)
		if l.held < 1 {
			l.credit = max(1, l.credit)
		}
	}
	switch {
	case l.held >= 1:
		l.held--
	case l.credit >= 1:
		l.credit--
		l.owed++
		l.left--
	default:
		return false, ask
	}
	return true, ask
}

// lend gives credit: this replica's part of what the bucket has.
func (l *leased) lend(replicas int) {
	l.credit = max(0, math.Floor(l.left/float64(replicas))-l.held)
}

// ask is the question to the bucket.
func (l *leased) ask(r Rate) leasing.Ask {
	l.sent, l.owed = l.owed, 0
	l.after, l.late = l.late, 0
	return leasing.Ask{
		Merchant: l.key.Merchant, Mode: l.key.Mode, Name: l.key.Name, PerSecond: r.PerSecond, Burst: r.Burst,
		Owed: l.sent, Late: l.after, Want: int64(max(0, sizeOf(r)-l.held)),
	}
}

// granted takes an answer in, and tells whether the bucket is to be asked again at once:
// more is owed since than was granted.
func (l *leased) granted(now time.Time, r Rate, g leasing.Grant, replicas int) (again bool) {
	l.held += float64(g.Granted)
	paid := min(l.held, l.owed)
	l.held -= paid
	l.owed -= paid
	l.left, l.since, l.credit = g.Left-l.owed, now, 0
	l.sent, l.after = 0, 0
	l.next = now
	if enough := max(1, sizeOf(r)/2); l.left < enough {
		l.next = now.Add(wait(enough-l.left, r))
	}
	if l.asking = l.owed > 0; l.asking {
		l.lend(replicas)
	}
	return l.asking
}

// failed takes in that nobody answered: what was to be paid is owed still.
func (l *leased) failed() {
	l.owed += l.sent
	l.late += l.after
	l.sent, l.after, l.credit, l.asking = 0, 0, 0, false
}

// owes tells whether anything was admitted that is not paid.
func (l *leased) owes() bool { return l.asking || l.owed > 0 || l.late > 0 }

// owe counts what was admitted of the replica's part. It is bounded by what a replica
// grants until it is taken for dead, and is known again.
func (l *leased) owe(part Rate) {
	l.late = min(l.late+1, max(l.late, part.PerSecond*(leasing.MostOwed+settleFor).Seconds()+float64(part.Burst)))
}

// settle is for who spent its part while the bucket could be asked by others: what the part
// has not got back is owed now, and the rest is paid with what did not fit into the bucket.
func (l *leased) settle(missing float64) {
	missing = min(max(0, missing), l.late)
	l.owed += missing
	l.late -= missing
}

// verdict tells what a merchant may know of the whole bucket.
func (l *leased) verdict(ok bool, now time.Time, r Rate) Verdict {
	v := verdict(ok, min(float64(r.Burst), l.left+l.held), r)
	if !ok {
		// A question is under way, or the bucket is known to be empty.
		v.RetryAfter = max(l.next.Sub(now), wait(1, r))
	}
	return v
}
