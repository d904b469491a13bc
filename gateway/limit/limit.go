// Package limit counts: it owns the token buckets of merchants, the header fields that show a merchant its rates, the quota
// batcher with its periods, and the failed authentications of an address. It is the door for golang.org/x/time/rate. The
// policy decides how fast and how often a merchant may call; this package must not. It must not know HTTP or SQL, and never
// reads a clock.
//
// A rate holds over all replicas that live. A replica alone keeps its buckets in memory and asks nobody. Several share a row
// for each bucket, of which each leases tokens: 100 ms of the rate, at least one. No request waits for that. A request takes
// from the lease, and where it runs low a goroutine asks for more, for many buckets in one statement. A bucket that was found
// empty is not asked before it has something again. What is admitted meanwhile is on credit, and paid with the next question,
// so over a minute the sum is the rate's: for three replicas, a burst and what the rate adds, and three at most. Tokens leased
// by a replica that dies are lost, which is one lease. A replica without the database grants the rate divided by the replicas
// that it last knew. Back again, it pays with what the bucket had no room for meanwhile, which is all of it where every
// replica was cut off; the rest it owes, up to half a minute's worth: only while a replica alone is cut off, and for what it
// granted beyond half a minute, do all together admit more. A replica that the others may not know yet grants its part, and
// pays in the same way. A quota is exact at every moment, because it is counted in the database.
package limit

import (
	"hash/maphash"
	"math"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// shards is how many parts the buckets are spread over, so that merchants seldom wait for one another.
	shards = 64

	// firstSweep is how many buckets a shard has before full ones are looked for.
	firstSweep = 64
)

// Key names a bucket: a merchant has one in each mode for each rate of the policy, or for each part of a rate, such as an
// operation.
type Key struct {
	Merchant string
	Mode     string
	Name     string
}

// Rate is a steady pace and the burst that is allowed after a pause. A rate that is not above zero, or a burst below one,
// allows nothing.
type Rate struct {
	PerSecond float64
	Burst     int
}

// Verdict is the answer for one request, with what the merchant may be told.
type Verdict struct {
	OK bool
	// Limit is the burst, Remaining what is left of it after this request.
	Limit     int
	Remaining int
	// Window is how long an empty bucket takes to fill, Reset how long this one takes.
	Window time.Duration
	Reset  time.Duration
	// RetryAfter is when the next request is allowed; zero where this one was.
	RetryAfter time.Duration
}

// spread is over how many replicas the rates are spread, and how.
type spread struct {
	replicas int // that live, this one included
	leased   bool
	away     bool // the database
}

func (s spread) alone() bool { return s.replicas < 2 }

func (s spread) shared() bool { return !s.alone() && !s.leased }

// text is for logs.
func (s spread) text() string {
	switch {
	case s.alone():
		return "merchants' rates are this replica's alone"
	case s.leased:
		return "merchants' rates are leased together with the other replicas"
	}
	return "merchants' rates are granted in part, until the other replicas know of this one"
}

// of is the part of a rate that a replica grants without a lease.
func (s spread) of(r Rate) Rate {
	if !s.shared() {
		return r
	}
	return Rate{PerSecond: r.PerSecond / float64(s.replicas), Burst: max(1, r.Burst/s.replicas)}
}

// Limiter holds the buckets. Any number of goroutines may use it.
type Limiter struct {
	seed   maphash.Seed
	shards [shards]shard
	wake   chan struct{} // of one, filled when a bucket is to be asked
	turn   int           // the shard that was collected last; of Run's goroutine alone
}

// shard is a part of the buckets.
type shard struct {
	mu      sync.Mutex
	buckets map[Key]*bucket
	sweepAt int
	spread  spread
	pending []*bucket // that are to be asked
}

// bucket is the state of one key.
type bucket struct {
	rate   Rate          // that the tokens go by: without a lease the replica's part
	tokens *rate.Limiter // nil where they are leased
	lease  *leased       // nil where the replica is alone
	// last is the latest time seen. Requests reach the lock in any order, and time that went back would be counted twice.
	last time.Time
}

// New makes a limiter whose buckets are all full.
func New() *Limiter {
	l := &Limiter{seed: maphash.MakeSeed(), wake: make(chan struct{}, 1)}
	for i := range l.shards {
		l.shards[i].buckets = map[Key]*bucket{}
		l.shards[i].sweepAt = firstSweep
	}
	return l
}

// Allow takes a token from the key's bucket if there is one. A rate that differs from the last one adjusts the bucket: what
// is in it stays, as far as it fits, so that changing a limit gives nobody a free burst.
func (l *Limiter) Allow(now time.Time, key Key, r Rate) Verdict {
	if !(r.PerSecond > 0) || r.Burst < 1 {
		return Verdict{Limit: max(0, r.Burst), Window: math.MaxInt64, Reset: math.MaxInt64, RetryAfter: math.MaxInt64}
	}
	s := &l.shards[maphash.Comparable(l.seed, key)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.bucket(now, key, r)
	if now.Before(b.last) {
		now = b.last
	}
	b.last = now
	if b.lease != nil {
		return l.together(s, now, b, r)
	}
	b.adjust(now, r)
	ok := b.tokens.AllowN(now, 1)
	return verdict(ok, b.tokens.TokensAt(now), r)
}

// adjust takes over a rate that was changed.
func (b *bucket) adjust(now time.Time, r Rate) {
	if b.rate != r {
		b.tokens.SetLimitAt(now, rate.Limit(r.PerSecond))
		b.tokens.SetBurstAt(now, r.Burst)
		b.rate = r
	}
}

// together takes a token of a bucket that all replicas share.
func (l *Limiter) together(s *shard, now time.Time, b *bucket, r Rate) Verdict {
	if s.spread.leased {
		if b.rate != r {
			b.lease.change(now, b.rate, r)
			b.rate = r
		}
		ok, ask := b.lease.take(now, r, s.spread.replicas)
		if ask {
			s.pending = append(s.pending, b)
			select {
			case l.wake <- struct{}{}:
			default:
			}
		}
		return b.lease.verdict(ok, now, r)
	}
	part := s.spread.of(r)
	b.lease.whole = r
	b.adjust(now, part)
	ok := b.tokens.AllowN(now, 1)
	if ok {
		b.lease.owe(part)
	}
	tokens := b.tokens.TokensAt(now)
	v := verdict(ok, tokens, r)
	if !ok {
		v.RetryAfter = wait(1-tokens, part)
	}
	return v
}

// Len is how many buckets are held.
func (l *Limiter) Len() int {
	n := 0
	for i := range l.shards {
		s := &l.shards[i]
		s.mu.Lock()
		n += len(s.buckets)
		s.mu.Unlock()
	}
	return n
}

// bucket is the key's, made full where there is none. Before a shard grows to twice what it needed, those that are full
// again are dropped: a new one would be no different. So memory follows the merchants that are busy.
func (s *shard) bucket(now time.Time, key Key, r Rate) *bucket {
	if b := s.buckets[key]; b != nil {
		return b
	}
	if len(s.buckets) >= s.sweepAt {
		for key, b := range s.buckets {
			if b.full(now) {
				delete(s.buckets, key)
			}
		}
		s.sweepAt = max(firstSweep, 2*len(s.buckets))
	}
	b := &bucket{rate: s.spread.of(r), last: now}
	if !s.spread.alone() {
		b.lease = &leased{key: key, left: float64(r.Burst), since: now}
	}
	if !s.spread.leased {
		b.tokens = rate.NewLimiter(rate.Limit(b.rate.PerSecond), b.rate.Burst)
	}
	s.buckets[key] = b
	return b
}

// verdict tells what a bucket with so many tokens means.
func verdict(ok bool, tokens float64, r Rate) Verdict {
	// A billionth of a token is what rounding may lose.
	v := Verdict{
		OK:        ok,
		Limit:     r.Burst,
		Remaining: max(0, int(math.Floor(tokens+1e-9))),
		Window:    wait(float64(r.Burst), r),
		Reset:     wait(float64(r.Burst)-tokens, r),
	}
	if !ok {
		v.RetryAfter = wait(1-tokens, r)
	}
	return v
}

// wait is how long so many tokens take, rounded up: who waits so long gets them.
func wait(tokens float64, r Rate) time.Duration {
	nanoseconds := math.Ceil(tokens / r.PerSecond * float64(time.Second))
	switch {
	case nanoseconds <= 0:
		return 0
	case nanoseconds >= math.MaxInt64:
		return math.MaxInt64
	default:
		return time.Duration(nanoseconds)
	}
}

// maxInteger is the greatest integer of a structured field (RFC 9651).
const maxInteger = 999_999_999_999_999

// AppendPolicy appends a rate to the value of the field RateLimit-Policy (draft-ietf-httpapi-ratelimit-headers): its burst,
// and the seconds in which that is granted anew. The field is a list: `"default";q=10;w=2`.
func AppendPolicy(dst []byte, name string, v Verdict) []byte {
	dst = appendItem(dst, name)
	dst = appendParameter(dst, ";q=", int64(v.Limit))
	return appendParameter(dst, ";w=", max(1, seconds(v.Window)))
}

// AppendLimit appends a verdict to the value of the field RateLimit: what remains, and the seconds until all of it is
// there again: `"default";r=9;t=1`.
func AppendLimit(dst []byte, name string, v Verdict) []byte {
	dst = appendItem(dst, name)
	dst = appendParameter(dst, ";r=", int64(v.Remaining))
	return appendParameter(dst, ";t=", seconds(v.Reset))
}

// appendItem starts a list's next item, a string. What such a string can't hold becomes a question mark.
func appendItem(dst []byte, name string) []byte {
	if len(dst) > 0 {
		dst = append(dst, ", "...)
	}
	dst = append(dst, '"')
	for _, c := range []byte(name) {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ' || c > '~':
			dst = append(dst, '?')
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}

// appendParameter appends a whole number with its name.
func appendParameter(dst []byte, name string, value int64) []byte {
	return strconv.AppendInt(append(dst, name...), min(value, maxInteger), 10)
}

// seconds rounds up to whole seconds: a merchant that waits so long has waited long enough.
func seconds(d time.Duration) int64 {
	whole := int64(d / time.Second)
	if d%time.Second > 0 {
		whole++
	}
	return whole
}
