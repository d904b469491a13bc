package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// DueMovements reads movements that are due, the oldest first.
type DueMovements interface {
	Due(ctx context.Context, due movement.DueMovements) ([]movement.Movement, error)
}

// Resolver polls one movement at its provider and applies what it finds. Whatever
// it returns, the movement's next poll is set when it returns. PutOff sets the next poll
// of a movement that can't be polled now.
type Resolver interface {
	Resolve(ctx context.Context, m movement.Movement) error
	PutOff(ctx context.Context, m movement.Movement) error
}

var errPanicked = errors.New("panic")

// Recovered does a piece of background work. A panic is an error of that piece, and
// ends no other work of the process.
func Recovered(work func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("%w: %v\n%s", errPanicked, cause, debug.Stack())
		}
	}()
	return work()
}

// Poller has the movements resolved that are due in the buckets that its replica
// holds. Nobody waits for a poll: an upstream that hangs, or an account, takes its own
// places and no more.
type Poller struct {
	*queue.Runner[movement.Movement]

	resolver Resolver
	places   places
	polls    sync.WaitGroup
}

const (
	pollEvery = time.Second
	pollPage  = 200
	// pollsOfUpstream and pollsOfAccount are how many polls are under way at once. They
	// are large, because a poll waits for a provider.
	pollsOfUpstream = 64
	pollsOfAccount  = 16
)

// NewPoller makes a poller.
func NewPoller(due DueMovements, resolver Resolver, leases *queue.Leases, log *slog.Logger) *Poller {
	p := &Poller{resolver: resolver, places: places{taken: map[string]int{}, underWay: map[movement.ID]bool{}}}
	// A bucket that another replica shall have waits for what is under way of it.
	leases.KeepWhile(p.places.uses)
	p.Runner = queue.NewRunner(queue.Work[movement.Movement]{
		Name: "poller", Every: pollEvery, Page: pollPage, Handle: p.begin, Drain: p.polls.Wait,
		Due: func(ctx context.Context, b queue.Batch) ([]movement.Movement, error) {
			held, underWay := p.places.full()
			return due.Due(ctx, movement.DueMovements{
				Buckets: b.Buckets, Held: held, UnderWay: underWay, Since: b.Since, Now: b.Now, Most: b.Most,
			})
		},
	}, leases, log)
	return p
}

// begin has the movements of a page resolved for which there are places, and waits for
// none of them. The others are still due, and read again once a place is free. A movement
// that can't be resolved has its next poll already.
func (p *Poller) begin(ctx context.Context, page []movement.Movement) error {
	for _, m := range page {
		if !p.places.take(m) {
			continue
		}
		p.polls.Go(func() {
			defer func() {
				if p.places.free(m) {
					p.Wake() // for those that had no place
				}
			}()
			err := Recovered(func() error { return p.resolver.Resolve(ctx, m) })
			if errors.Is(err, errPanicked) { // maybe before its next poll was set
				err = errors.Join(err, p.resolver.PutOff(ctx, m))
			}
			p.Warn(ctx, "resolve "+m.ID.String(), err)
		})
	}
	return nil
}

// places bound the polls that are under way: of each upstream, and of each account.
type places struct {
	mu       sync.Mutex
	taken    map[string]int // by the keys of upstreams and accounts, only those that have any
	underWay map[movement.ID]bool
}

// placesOf are the keys under which a movement takes places.
func placesOf(m movement.Movement) []string {
	if account := m.AccountKey(); account != "" {
		return []string{m.UpstreamKey(), account}
	}
	return []string{m.UpstreamKey()}
}

// mostOf is how many places there are under a key: an account's begins with its
// upstream's.
func mostOf(key string) int {
	if strings.Count(key, "/") > 1 {
		return pollsOfAccount
	}
	return pollsOfUpstream
}

// take takes the places of a movement. It is false where one is not there.
func (p *places) take(m movement.Movement) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	keys := placesOf(m)
	if slices.ContainsFunc(keys, func(key string) bool { return p.taken[key] >= mostOf(key) }) {
		return false
	}
	for _, key := range keys {
		p.taken[key]++
	}
	p.underWay[m.ID] = true
	return true
}

// free gives a movement's places back, and tells whether one was the last.
func (p *places) free(m movement.Movement) (last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, key := range placesOf(m) {
		last = last || p.taken[key] == mostOf(key)
		if p.taken[key]--; p.taken[key] == 0 {
			delete(p.taken, key)
		}
	}
	delete(p.underWay, m.ID)
	return last
}

// full are the keys under which there is no place, and what is under way.
func (p *places) full() (held []string, underWay []movement.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, n := range p.taken {
		if n >= mostOf(key) {
			held = append(held, key)
		}
	}
	slices.Sort(held)
	return held, slices.Collect(maps.Keys(p.underWay))
}

// uses tells whether something of a bucket is under way.
func (p *places) uses(bucket int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := range p.underWay {
		if id.Bucket() == bucket {
			return true
		}
	}
	return false
}
