package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// DuePolls reads the polls that are due, and the movements that they are about. With an
// error come those that could be read.
type DuePolls interface {
	Due(ctx context.Context, scan movement.DueScan) ([]movement.DuePoll, error)
	MovementsByID(ctx context.Context, ids []movement.ID) ([]movement.Movement, error)
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
	*queue.Runner[movement.DuePoll]

	due      DuePolls
	resolver Resolver
	places   *queue.Places[movement.ID]
	after    *queue.Places[movement.ID] // of these: of what has succeeded, which is asked about behind all that is open
	polls    sync.WaitGroup

	behind     map[int]movement.QueuePlace // by bucket, how far a queue was read behind its first page
	nextBehind time.Time
}

const (
	pollEvery = time.Second
	// pollPage is how many polls of a bucket are read at once, and pollBehind how many
	// behind a full page.
	pollPage   = 64
	pollBehind = 1000
	// pollsReadWithin bounds the read of a page's movements: one that hangs must not keep
	// the places of all of them.
	pollsReadWithin = 5 * time.Second
	// pollsOfUpstream and pollsOfAccount are how many polls are under way at once. They
	// are large, because a poll waits for a provider.
	pollsOfUpstream = 64
	pollsOfAccount  = 16
	// pollsAfter is how many of them may be of what has succeeded.
	pollsAfter = 4
)

// NewPoller makes a poller.
func NewPoller(due DuePolls, resolver Resolver, leases *queue.Leases, log *slog.Logger) *Poller {
	p := &Poller{due: due, resolver: resolver, behind: map[int]movement.QueuePlace{}, places: queue.NewPlaces[movement.ID](mostOf)}
	p.after = queue.NewPlaces[movement.ID](func(string) int { return pollsAfter })
	// A bucket that another replica shall have waits for what is under way of it.
	leases.KeepWhile(func(bucket int) bool {
		return p.places.Any(func(id movement.ID) bool { return id.Bucket() == bucket })
	})
	p.Runner = queue.NewRunner(queue.Work[movement.DuePoll]{
		Name: "poller", Every: pollEvery, Page: pollPage, Due: p.read, Handle: p.begin, Drain: p.polls.Wait,
	}, leases, log)
	return p
}

// read reads the first page of each bucket. Where that is full, its polls may all be of
// accounts that have no place, so what lies behind it is read as well, in pages that are
// larger and one second apart: a scan is bounded, and nobody waits for an account that
// hangs. Such a walk ends where one of its own pages isn't full. A first page that begins
// ten minutes ago says nothing about what is older.
func (p *Poller) read(ctx context.Context, b queue.Batch) ([]movement.DuePoll, error) {
	from := make([]movement.QueuePlace, len(b.Buckets))
	for i, bucket := range b.Buckets {
		from[i] = movement.QueuePlace{Bucket: bucket, DueAt: b.Since}
	}
	page, full, err := p.scan(ctx, movement.DueScan{From: from, Now: b.Now, Most: b.Most})
	if err != nil && len(page) == 0 {
		return nil, err
	}
	walks := map[int]movement.QueuePlace{}
	for _, bucket := range b.Buckets {
		end, more := full[bucket]
		walk, begun := p.behind[bucket]
		switch {
		case begun && (more || !b.Since.IsZero()):
			walks[bucket] = walk
		case more && b.Since.IsZero():
			walks[bucket] = end
		case more:
			walks[bucket] = movement.QueuePlace{Bucket: bucket} // what is older may wait, too
		}
	}
	p.behind = walks
	if len(p.behind) == 0 || b.Now.Before(p.nextBehind) {
		return page, err
	}
	p.nextBehind = b.Now.Add(pollEvery)
	rest, full, failed := p.scan(ctx, movement.DueScan{From: slices.Collect(maps.Values(p.behind)), Now: b.Now, Most: pollBehind, Behind: true})
	if failed == nil || len(rest) > 0 {
		p.behind = full
	}
	return append(page, rest...), errors.Join(err, failed)
}

// scan reads a page, and tells behind what the full pages of buckets end.
func (p *Poller) scan(ctx context.Context, scan movement.DueScan) (page []movement.DuePoll, full map[int]movement.QueuePlace, err error) {
	page, err = p.due.Due(ctx, scan)
	read, full := map[int]int{}, map[int]movement.QueuePlace{}
	for _, poll := range page { // in order, so the last of a bucket ends its page
		place := poll.Place()
		if read[place.Bucket]++; read[place.Bucket] == scan.Most {
			full[place.Bucket] = place
		}
	}
	return page, full, err
}

// begin has the movements of a page resolved for which there are places, and waits for
// none of them. The others are still due, and read again once a place is free. A movement
// that can't be resolved has its next poll already. What has succeeded and has to wait
// leaves its places to the rest of the page.
func (p *Poller) begin(ctx context.Context, page []movement.DuePoll) error {
	for len(page) > 0 {
		var begun []movement.ID
		var rest []movement.DuePoll
		for _, due := range page {
			if p.places.Take(due.ID, placesOf(due.Account)...) {
				begun = append(begun, due.ID)
			} else {
				rest = append(rest, due)
			}
		}
		if len(begun) == 0 || !p.resolve(ctx, begun) {
			return nil
		}
		page = rest
	}
	return nil
}

// resolve has movements resolved that have places, and tells whether some gave theirs back.
func (p *Poller) resolve(ctx context.Context, begun []movement.ID) (gaveBack bool) {
	reading, cancel := context.WithTimeout(ctx, pollsReadWithin)
	movements, err := p.due.MovementsByID(reading, begun)
	cancel()
	p.Warn(ctx, "read what is due", err)
	byID := map[movement.ID]movement.Movement{}
	for _, m := range movements {
		byID[m.ID] = m
	}
	for _, id := range begun {
		m, found := byID[id]
		waits := found && m.HasPaid() && !p.after.Take(id, movement.UpstreamOf(m.QueueAccount()))
		if !found || waits {
			p.places.Free(id)
			gaveBack = gaveBack || waits
			continue
		}
		p.polls.Go(func() {
			defer func() {
				after := p.after.Free(id)
				if p.places.Free(id) || after {
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
	return gaveBack
}

// placesOf are the keys under which an account's polls take places.
func placesOf(account string) []string {
	if upstream := movement.UpstreamOf(account); upstream != account {
		return []string{upstream, account}
	}
	return []string{account}
}

// mostOf is how many places there are under a key.
func mostOf(key string) int {
	if movement.UpstreamOf(key) != key {
		return pollsOfAccount
	}
	return pollsOfUpstream
}
