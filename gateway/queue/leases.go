package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// Lease names buckets of a queue and the replica that holds them.
type Lease struct {
	Queue   string
	Buckets []int
	Holder  string // the replica
}

// LeaseStore is where replicas agree on who holds which bucket.
type LeaseStore interface {
	// TakeLeases takes or renews leases until a time, and returns the buckets
	// that are the holder's.
	TakeLeases(ctx context.Context, lease Lease, now, until time.Time) ([]int, error)
	// DropLeases gives leases back, where they are the holder's.
	DropLeases(ctx context.Context, lease Lease) error
	// LiveLeases counts the leases of a queue that have not run out. Until is
	// when a lease that is taken now would.
	LiveLeases(ctx context.Context, queue string, now, until time.Time) (int, error)
}

// Leases are the buckets of a queue that one replica holds. Each replica also
// holds a membership of the queue, so that all can count how many they are, and
// none takes more than its part.
type Leases struct {
	store   LeaseStore
	queue   string
	replica string
	buckets int
	now     func() time.Time // that all replicas share

	member  int               // this replica's number among the members, -1 for none
	held    map[int]time.Time // until when each bucket is ours
	renewed time.Time

	// leaving are buckets that another replica shall have as soon as nothing of
	// them is in use here: we keep their leases and don't work on them any more.
	leaving map[int]bool
	inUse   func(bucket int) bool
}

// NewLeases makes a replica's leases of a queue that has so many buckets. The
// replica's name must be unique. Now tells the time that all replicas share.
func NewLeases(store LeaseStore, queue, replica string, buckets int, now func() time.Time) *Leases {
	return &Leases{
		store: store, queue: queue, replica: replica, buckets: buckets, now: now, member: -1, held: map[int]time.Time{},
		leaving: map[int]bool{}, inUse: func(int) bool { return false },
	}
}

// KeepWhile has a bucket that another replica shall have wait until it is not in
// use here any more. It must be called before Hold.
func (l *Leases) KeepWhile(inUse func(bucket int) bool) { l.inUse = inUse }

const (
	leaseFor   = 10 * time.Second
	renewEvery = 3 * time.Second
	// margin is how much earlier than the lease's end we stop: replicas' clocks
	// differ, and what was begun needs a moment.
	margin = 2 * time.Second
	// renewWithin ends a renewal that the database does not answer while leases
	// are left of the last one.
	renewWithin = leaseFor - margin - renewEvery
	mostMembers = 256
)

// Hold renews the leases when it is time to, and returns the buckets that are
// surely ours now. They are ours for a moment: whoever works longer asks again.
// It is not safe for concurrent use.
func (l *Leases) Hold(ctx context.Context) ([]int, error) {
	begun := time.Now()
	if !before(begun, l.renewed.Add(renewEvery)) {
		if err := l.renew(ctx, begun); err != nil {
			return nil, err
		}
		l.renewed = begun
	}
	l.leave(ctx)
	now := time.Now() // a renewal may have lasted longer than a lease
	buckets := make([]int, 0, len(l.held))
	for bucket, until := range l.held {
		if before(now, until.Add(-margin)) {
			buckets = append(buckets, bucket)
		}
	}
	slices.Sort(buckets)
	return buckets, nil
}

// before compares on both of this machine's clocks: the monotonic one stands still
// while it sleeps, and the wall's may be set back.
func before(a, b time.Time) bool { return a.Before(b) && a.Round(0).Before(b.Round(0)) }

func (l *Leases) renew(ctx context.Context, begun time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := l.join(ctx); err != nil {
		return err
	}
	now := l.now()
	members, err := l.store.LiveLeases(ctx, l.membership(), now, now.Add(leaseFor))
	if err != nil {
		return err
	}
	fair := (l.buckets + max(members, 1) - 1) / max(members, 1)
	var kept, others []int
	for i := range l.buckets {
		// Replicas begin at different buckets, so that they rarely want the same.
		bucket := (i + l.member*fair) % l.buckets
		_, held := l.held[bucket]
		if held && len(l.held) > fair {
			delete(l.held, bucket)
			l.leaving[bucket], held = true, false
		}
		if held || l.leaving[bucket] && l.inUse(bucket) {
			kept = append(kept, bucket)
		}
		if !held {
			others = append(others, bucket)
		}
	}
	if err := l.take(ctx, kept, begun); err != nil {
		return err
	}
	for len(l.held) < fair && len(others) > 0 {
		next := others[:min(fair-len(l.held), len(others))]
		others = others[len(next):]
		for _, bucket := range next {
			delete(l.leaving, bucket)
		}
		if err := l.take(ctx, next, begun); err != nil {
			return err
		}
	}
	return nil
}

// take takes or renews leases. While the database does not answer, what we hold
// is ours as long as it was. Others judge by the shared time; we by this machine's own,
// from before the lease was written.
func (l *Leases) take(ctx context.Context, buckets []int, begun time.Time) error {
	if len(buckets) == 0 {
		return nil
	}
	now := l.now()
	ours, err := l.store.TakeLeases(ctx, Lease{Queue: l.queue, Buckets: buckets, Holder: l.replica}, now, now.Add(leaseFor))
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		switch {
		case l.leaving[bucket]: // kept until it is not in use any more
		case slices.Contains(ours, bucket):
			l.held[bucket] = begun.Add(leaseFor)
		default:
			delete(l.held, bucket)
		}
	}
	return nil
}

// leave drops the leases of buckets that are leaving and not in use any more.
// Where it can't, they run out by themselves.
func (l *Leases) leave(ctx context.Context) {
	var idle []int
	for bucket := range l.leaving {
		if !l.inUse(bucket) {
			idle = append(idle, bucket)
		}
	}
	if l.drop(ctx, l.queue, idle) != nil {
		return
	}
	for _, bucket := range idle {
		delete(l.leaving, bucket)
	}
}

func (l *Leases) drop(ctx context.Context, queue string, buckets []int) error {
	if len(buckets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return l.store.DropLeases(ctx, Lease{Queue: queue, Buckets: buckets, Holder: l.replica})
}

// join renews the replica's membership, or takes the first number that is free.
func (l *Leases) join(ctx context.Context) error {
	now := l.now()
	for try := range mostMembers {
		number := (max(l.member, 0) + try) % mostMembers
		lease := Lease{Queue: l.membership(), Buckets: []int{number}, Holder: l.replica}
		ours, err := l.store.TakeLeases(ctx, lease, now, now.Add(leaseFor))
		if err != nil {
			return err
		}
		if len(ours) > 0 {
			l.member = number
			return nil
		}
	}
	return errors.New("queue: it has as many members as there may be")
}

// membership is the queue whose buckets are the numbers of this queue's members.
func (l *Leases) membership() string { return l.queue + "/members" }

// Release gives everything back, so that others need not wait for the leases
// to run out.
func (l *Leases) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	defer l.forget()
	if l.drop(ctx, l.queue, slices.Collect(maps.Keys(l.held))) != nil {
		return // they run out by themselves
	}
	l.leave(ctx)
	if l.member >= 0 {
		_ = l.drop(ctx, l.membership(), []int{l.member}) // it runs out by itself
	}
}

// forget begins anew: the next Hold, if there is one, joins first.
func (l *Leases) forget() {
	clear(l.held)
	clear(l.leaving)
	l.member, l.renewed = -1, time.Time{}
}
