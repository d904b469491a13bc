package movement

import (
	"bytes"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// Polls is when a movement is polled without anybody asking, as spans of time.
// Notifications are the usual way to learn of things; polls find what was lost.
type Polls struct {
	Open      []time.Duration // after the creation, while it is open, and then daily; nil: by the spans below
	Pending   []time.Duration // after the creation, while it is pending, and then hourly
	Expired   []time.Duration // after it expired
	Succeeded []time.Duration // after it succeeded, or was paid late
}

var (
	// After SendBy, for a call whose answer never came.
	pollSubmitting = []time.Duration{2 * time.Second, 10 * time.Second}
	// After the moment from which not-found is proof.
	pollProof = []time.Duration{0, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour}
	// After the creation, while it is pending.
	pollPending = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour}
	// After its life is over and the provider has not said so.
	pollOverdue = []time.Duration{2 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
	// After the creation of what goes out, while it is open.
	pollOut = []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour}
	// After it expired: once more for late money that was not told.
	pollExpired = []time.Duration{time.Hour}
	// After the life of what is ended by its account's statement is over, and readings of
	// that have not ended it.
	pollUnread = []time.Duration{3 * time.Hour, OverdueAfter}
)

const (
	pendingEvery = time.Hour
	seldom       = 24 * time.Hour
	// patience is which part of the time that has passed is waited once more when
	// the fixed polls are over. It grows to seldom, and it is short again for what
	// was only due late, because nobody was there to poll.
	patience = 4
)

// Pace is how an upstream is asked about its movements.
type Pace struct {
	SettlesWithin      time.Duration // after it nothing of ours can be under way any more
	ErrorSettlesWithin time.Duration // the same, after an error of the upstream's own
	Every              time.Duration // how long it is left alone about one movement
}

// ClockSkew is how far a replica's clock may be from the one that all share, which it
// measures: half a second of error, and up to a second that is no step yet. While it
// can't know that, a replica neither reserves nor takes "not found" for proof.
const ClockSkew = 2 * time.Second

// ProvenAfter is the moment from which the provider's "not found" is proof
// that nothing was sent: no request of ours can still be on its way, or the provider
// has said itself that the call is over. One replica wrote SendBy or ErroredAt and
// another may judge by it, with clocks twice ClockSkew apart.
func (m *Movement) ProvenAfter(rules Rules) time.Time {
	proven := m.SendBy.Add(rules.Pace.SettlesWithin)
	if m.Errored() && rules.ErrorEnds() {
		proven = earlier(proven, m.ErroredAt.Add(rules.Pace.ErrorSettlesWithin))
	}
	return proven.Add(2 * ClockSkew)
}

// ResubmitUntil is the moment until which a movement's lookup may be the same request
// again. After ResubmitWithin the provider could take it for another movement. One that
// no provider has confirmed may be bought by it, which its merchant waits for no longer
// than BuysWithin.
func (m *Movement) ResubmitUntil(rules Rules) time.Time {
	until := m.CreatedAt.Add(rules.ResubmitWithin)
	if buys := m.SendBy.Add(rules.BuysWithin); m.State.Unknown() && buys.Before(until) {
		return buys
	}
	return until
}

// AskAgainIn is how long a movement that "not found" was said of is left alone, where
// that goes on: no longer than it has gone on in proportion.
func (m *Movement) AskAgainIn(now time.Time, rules Rules) time.Duration {
	silent := now.Sub(m.ProvenAfter(rules))
	return min(max(rules.NotFound.Apart, rules.Pace.Every, silent/patience), seldom)
}

// TellsMore is when asking the provider can tell more of a movement that is asked about
// now: as soon as it may be asked again, and no sooner than the proof where it has ended
// the call with an error.
func (m *Movement) TellsMore(now time.Time, rules Rules) time.Time {
	if m.Errored() && m.State.Unknown() {
		return m.DueAt
	}
	return earlier(m.DueAt, now.Add(rules.Pace.Every))
}

// Asks tells whether there can be anything left to find out of a movement.
func (r Rules) Asks(m Movement) bool { return m.State.Open() || r.lookups(m) != nil }

// lookups are those after a movement's end. What was paid, late or not, may go back.
func (r Rules) lookups(m Movement) []time.Duration {
	switch {
	case m.HasPaid():
		return r.Polls.Succeeded
	case m.State == Expired:
		return r.Polls.Expired
	}
	return nil
}

// NextPoll is when the movement is polled next, given that it is polled now. It is
// zero when there is nothing left to find out.
func (m *Movement) NextPoll(now time.Time, rules Rules) time.Time {
	if !m.State.Open() {
		next, _ := after(now, m.UpdatedAt, rules.lookups(*m))
		return next
	}
	next := m.nextOpen(now, rules)
	if until := m.ResubmitUntil(rules); rules.Resubmits && now.Before(until) {
		next = m.nextResubmission(now, next, until)
	}
	return later(next, now.Add(rules.Pace.Every))
}

// nextResubmission is when a movement is polled by the same request, of which the time
// is short in which it may buy. Whoever polls at its end lists that it can't be asked.
func (m *Movement) nextResubmission(now, next, until time.Time) time.Time {
	if often := now.Add(now.Sub(m.SendBy) / patience); m.State.Unknown() && often.Before(next) {
		next = often
	}
	if until.Before(next) {
		return until
	}
	return next
}

func (m *Movement) nextOpen(now time.Time, rules Rules) time.Time {
	switch {
	case rules.Polls.Open != nil:
		next, ok := after(now, notAhead(m.CreatedAt, now), rules.Polls.Open)
		if !ok {
			next = now.Add(seldom)
		}
		return next
	case m.State == Pending:
		return m.nextPending(now, rules)
	}
	return m.nextUnknown(now, rules)
}

// nextUnknown is when something new can be heard of a call that was not answered. One
// that ended in an error is asked about at once, and then from the proof on: a poll in
// between would put that off.
func (m *Movement) nextUnknown(now time.Time, rules Rules) time.Time {
	proof := m.ProvenAfter(rules)
	next, ok := after(now, m.SendBy, pollSubmitting)
	if ok && next.Before(proof) && !(m.Errored() && rules.ErrorEnds()) {
		return next
	}
	return afterOrLater(now, proof, pollProof)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

func (m *Movement) nextPending(now time.Time, rules Rules) time.Time {
	switch {
	case rules.EndedBy == EndedByStatement:
		return afterOrLater(now, m.ExpiresAt, pollUnread)
	case !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt):
		return afterOrLater(now, m.ExpiresAt, pollOverdue)
	}
	next, ok := after(now, notAhead(m.CreatedAt, now), rules.Polls.Pending)
	if !ok {
		next = now.Add(pendingEvery)
	}
	if end := m.ExpiresAt.Add(pollOverdue[0]); !m.ExpiresAt.IsZero() && end.Before(next) {
		return end
	}
	return next
}

// notAhead is a moment of the past, also where a clock that is ahead of ours has
// told it, which must put nothing off.
func notAhead(moment, now time.Time) time.Time {
	if moment.After(now) {
		return now
	}
	return moment
}

// afterOrLater is the first of the moments start+offset that lies after now, and
// when there is none, one that is the further off the longer it has taken.
func afterOrLater(now, start time.Time, offsets []time.Duration) time.Time {
	if next, ok := after(now, start, offsets); ok {
		return next
	}
	return now.Add(min(now.Sub(start)/patience, seldom))
}

// after is the first of the moments start+offset that lies after now.
func after(now, start time.Time, offsets []time.Duration) (time.Time, bool) {
	for _, offset := range offsets {
		if moment := start.Add(offset); moment.After(now) {
			return moment, true
		}
	}
	return time.Time{}, false
}

// DueScan says which polls a poller wants to read: of each place in the queue the first
// ones that are due by Now, so many.
type DueScan struct {
	From []QueuePlace
	Now  time.Time
	Most int // of each place

	Behind bool // a scan of before read what comes first, and carried over what was to be
}

// QueuePlace is a place in a bucket's queue: behind what is due at a time and has an id.
type QueuePlace struct {
	Bucket int
	DueAt  time.Time
	ID     ID
}

// DuePoll is a poll that is due.
type DuePoll struct {
	ID      ID // of its movement
	Account string
	DueAt   time.Time
}

// Place is the place in the queue behind a poll.
func (p DuePoll) Place() QueuePlace {
	return QueuePlace{Bucket: p.ID.Bucket(), DueAt: p.DueAt, ID: p.ID}
}

// Behind tells whether what is due at a time, of a movement, lies behind a place.
func (q QueuePlace) Behind(due time.Time, id ID) bool {
	return due.After(q.DueAt) || due.Equal(q.DueAt) && bytes.Compare(id[:], q.ID[:]) > 0
}

// QueueAccount names the account that a movement is polled on: its upstream, which is a
// provider in a mode, and whose account there, unless all share the platform's.
func (m *Movement) QueueAccount() string {
	upstream := m.Provider + "/" + m.Owner.Mode
	if m.ConnectionOwner == manifest.OwnerPlatform {
		return upstream
	}
	return upstream + "/" + m.Owner.MerchantID
}

// UpstreamOf is the upstream that an account of the queue belongs to, which is itself
// where that is the platform's.
func UpstreamOf(account string) string {
	if parts := strings.SplitN(account, "/", 3); len(parts) == 3 {
		return parts[0] + "/" + parts[1]
	}
	return account
}

// versionsEach lies above how often one row of polls is written.
const versionsEach = 1_000_000

// FirstVersion is the version with which a movement's row of polls begins: above those
// of every earlier row of the movement.
func FirstVersion(sequence int) int64 { return int64(sequence) * versionsEach }
