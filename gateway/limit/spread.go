package limit

import (
	"context"
	"log/slog"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/seed-f006e74d/gerbang/gateway/limit/leasing"
)

// Buckets keeps the buckets that all replicas share.
type Buckets interface {
	// LeaseRates asks many buckets at once, each at most once, and answers in the order of
	// the asks. A bucket that is not there is full. After an error nobody knows what was
	// granted and paid. No asks are a question whether asks would be taken.
	LeaseRates(ctx context.Context, asks []leasing.Ask) ([]leasing.Grant, error)
}

// Others tells since when each other replica that lives has run, and when that was read;
// a zero time where it never was.
type Others func() (started []time.Time, read time.Time)

// Sharing is what a limiter needs to hold its rates together with other replicas.
type Sharing struct {
	Buckets Buckets
	Others  Others
	Now     func() time.Time
	Log     *slog.Logger
}

const (
	// lookEvery is how often it is looked who lives, and whether a database that was away
	// is back.
	lookEvery = 500 * time.Millisecond
	// knowEvery is how often it is looked until it was first read who lives: so long a replica
	// takes itself to be alone.
	knowEvery = 10 * time.Millisecond
	// askWithin bounds one question to the database.
	askWithin = time.Second
	// askAtOnce bounds the buckets of one question, and pauseAfter the questions: what
	// merchants ask for meanwhile is one more.
	askAtOnce  = 1000
	pauseAfter = 10 * time.Millisecond
	// absentFrom is for how long nobody was heard of by who may be taken for dead.
	absentFrom = 15 * time.Second
	// settleFor is until all have heard of a new replica: a heartbeat, and a second.
	settleFor = 6 * time.Second
)

// membership is what the goroutine of Run knows.
type membership struct {
	now      spread
	replicas int
	read     time.Time // who lives
	settles  time.Time // until when the others may not know of this replica
	returns  time.Time // until when others may come back after an outage
	away     bool      // the database
}

// Run holds the rates together with the other replicas until the context ends. Without it
// a limiter is alone. One goroutine may call it, once.
func (l *Limiter) Run(ctx context.Context, sharing Sharing) error {
	m := membership{now: spread{replicas: 1}, replicas: 1}
	tick := time.NewTicker(knowEvery)
	defer tick.Stop()
	for {
		now := sharing.Now()
		if m.look(now, sharing.Others) {
			tick.Reset(lookEvery)
		}
		if m.away {
			m.heard(ctx, sharing, l.ask(ctx, sharing, nil))
		}
		if next := m.spread(now); next != m.now {
			if !next.away {
				sharing.Log.InfoContext(ctx, next.text(), "replicas", next.replicas)
			}
			l.spread(now, next)
			m.now = next
		}
		for m.now.leased && !m.away && ctx.Err() == nil {
			asks := l.collect()
			if len(asks) == 0 {
				break
			}
			m.heard(ctx, sharing, l.ask(ctx, sharing, asks))
			if len(asks) < askAtOnce {
				time.Sleep(pauseAfter)
			}
		}
		if m.away && m.now.leased {
			continue // to spread without the database
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-l.wake:
		}
	}
}

// look reads who lives. A replica that was not heard of for long may be unknown to the
// others for a while, each of which may take itself to be alone; two that have run for a
// while know of each other. After an outage the first that is back hears of nobody, and
// must not take itself to be alone before the others had time to come back. It tells whether
// anything new was read.
func (m *membership) look(now time.Time, others Others) bool {
	started, read := others()
	if !read.After(m.read) {
		return false
	}
	knowing := 0
	for _, since := range started {
		if read.Sub(since) >= settleFor {
			knowing++
		}
	}
	if m.read.IsZero() || read.Sub(m.read) > absentFrom {
		m.returns = now.Add(settleFor)
		if len(started) > 0 && knowing < 2 {
			m.settles = m.returns
		}
	}
	before := m.replicas
	if m.read, m.replicas = read, len(started)+1; now.Before(m.returns) {
		m.replicas = max(before, m.replicas)
	}
	return true
}

func (m *membership) spread(now time.Time) spread {
	s := spread{replicas: m.replicas, away: m.away}
	s.leased = !s.alone() && !m.away && !now.Before(m.settles)
	return s
}

// heard takes in whether the database has answered.
func (m *membership) heard(ctx context.Context, sharing Sharing, err error) {
	switch {
	case ctx.Err() != nil:
	case err != nil && !m.away:
		sharing.Log.WarnContext(ctx, "merchants' rates can't be leased: this replica grants its part of each", "replicas", m.replicas, "error", err)
		m.away = true
	case err == nil:
		m.away = false
	}
}

// asked is a bucket whose question is under way.
type asked struct {
	shard  *shard
	bucket *bucket
	leasing.Ask
}

// collect takes up to askAtOnce of the questions that wait. It goes on where it ended, so
// nobody waits for who comes again.
func (l *Limiter) collect() []asked {
	var all []asked
	for range l.shards {
		if len(all) == askAtOnce {
			break
		}
		l.turn = (l.turn + 1) % shards
		s := &l.shards[l.turn]
		s.mu.Lock()
		n := min(len(s.pending), askAtOnce-len(all))
		for _, b := range s.pending[:n] {
			all = append(all, asked{s, b, b.lease.ask(b.rate)})
		}
		if s.pending = s.pending[n:]; len(s.pending) > 0 {
			l.turn = (l.turn + shards - 1) % shards // it is the first again
		} else {
			s.pending = nil
		}
		s.mu.Unlock()
	}
	return all
}

// ask asks the database, and takes its answers in.
func (l *Limiter) ask(ctx context.Context, sharing Sharing, all []asked) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	asks := make([]leasing.Ask, len(all))
	for i, a := range all {
		asks[i] = a.Ask
	}
	grants, err := sharing.Buckets.LeaseRates(ctx, asks)
	now := sharing.Now()
	for i, a := range all {
		a.shard.mu.Lock()
		if err != nil {
			a.bucket.lease.failed()
		} else if a.bucket.lease.granted(now, a.bucket.rate, grants[i], a.shard.spread.replicas) {
			a.shard.pending = append(a.shard.pending, a.bucket)
		}
		a.shard.mu.Unlock()
	}
	return err
}

// spread has all buckets go another way. Nobody gets a second burst by that: what was
// spent the old way is owed to the bucket that all share, and who has nothing left begins
// with nothing.
func (l *Limiter) spread(now time.Time, next spread) {
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		before := s.spread
		s.spread, s.pending = next, nil
		for key, b := range s.buckets {
			at := now
			if at.Before(b.last) {
				at = b.last
			}
			b.last = at
			if b.full(at) {
				delete(s.buckets, key) // a new one is no different
				continue
			}
			b.turn(at, key, before, next)
			if next.leased && b.lease.owes() {
				b.lease.asking = true
				if b.lease.credit = math.Floor(b.lease.left); before.alone() {
					b.lease.lend(next.replicas)
				}
				s.pending = append(s.pending, b)
			}
		}
		s.mu.Unlock()
	}
}

// full tells whether a bucket holds all that a new one would, and owes nothing.
func (b *bucket) full(now time.Time) bool {
	if b.lease != nil && b.lease.owes() {
		return false
	}
	if b.tokens == nil {
		return b.lease.at(now, b.rate) >= float64(b.rate.Burst)
	}
	return b.tokens.TokensAt(now) >= float64(b.tokens.Burst())
}

// turn has a bucket go another way.
func (b *bucket) turn(now time.Time, key Key, before, next spread) {
	switch {
	case before.leased && next.leased:
		return
	case before.leased:
		held := b.lease.held
		if next.alone() {
			held -= b.lease.owed
		}
		b.lease.whole, b.rate = b.rate, next.of(b.rate)
		b.tokens = filled(now, b.rate, held)
		b.lease.held, b.lease.credit, b.lease.asking = 0, 0, false
	case before.alone() && !next.alone():
		b.lease = &leased{key: key, whole: b.rate, owed: float64(b.rate.Burst) - b.tokens.TokensAt(now)}
	}
	if next.alone() {
		b.lease = nil
	}
	if next.leased {
		l := b.lease
		if before.shared() && !before.away {
			l.settle(float64(b.tokens.Burst()) - b.tokens.TokensAt(now))
		}
		l.left, l.since, l.next = b.tokens.TokensAt(now), now, now
		b.rate, b.tokens = l.whole, nil
	}
}

// filled is a bucket that holds some tokens.
func filled(now time.Time, r Rate, tokens float64) *rate.Limiter {
	l := rate.NewLimiter(rate.Limit(r.PerSecond), r.Burst)
	tokens = min(max(tokens, 0), float64(r.Burst))
	l.AllowN(now.Add(-wait(tokens, r)), r.Burst)
	return l
}
