package worker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// Leases is where replicas agree on who holds which bucket.
type Leases interface {
	TakeLeases(ctx context.Context, lease store.Lease, now, until time.Time) ([]int, error)
	DropLeases(ctx context.Context, lease store.Lease) error
	LiveLeases(ctx context.Context, queue string, now, until time.Time) (int, error)
}

// Share is the part of a queue's buckets that one replica holds. Each replica
// also holds a seat, so that all can count how many they are, and none takes
// more than its part.
type Share struct {
	leases  Leases
	queue   string
	replica string

	seat    int
	held    map[int]time.Time // until when each is ours
	renewed time.Time

	// leaving are buckets that another replica shall have as soon as nothing of
	// them is in use here: we keep their leases and don't work on them any more.
	leaving map[int]bool
	inUse   func(bucket int) bool
}

// NewShare makes a replica's share of a queue. Replica must be unique.
func NewShare(leases Leases, queue, replica string) *Share {
	return &Share{
		leases: leases, queue: queue, replica: replica, seat: -1, held: map[int]time.Time{},
		leaving: map[int]bool{}, inUse: func(int) bool { return false },
	}
}

const (
	leaseFor   = 10 * time.Second
	renewEvery = 3 * time.Second
	// margin is how much earlier than the lease's end we stop: replicas' clocks
	// differ, and what was begun needs a moment.
	margin = 2 * time.Second
	// renewWithin ends a renewal that the database does not answer while leases
	// are left of the last one.
	renewWithin = leaseFor - margin - renewEvery
	seats       = 256
)

// Hold renews the share when it is time to, and returns the buckets that are
// surely ours now. They are ours for a moment: whoever works longer asks again.
// It is not safe for concurrent use.
func (s *Share) Hold(ctx context.Context) ([]int, error) {
	begun := time.Now()
	if !before(begun, s.renewed.Add(renewEvery)) {
		if err := s.renew(ctx, begun); err != nil {
			return nil, err
		}
		s.renewed = begun
	}
	s.leave(ctx)
	now := time.Now() // a renewal may have lasted longer than a lease
	buckets := make([]int, 0, len(s.held))
	for bucket, until := range s.held {
		if before(now, until.Add(-margin)) {
			buckets = append(buckets, bucket)
		}
	}
	slices.Sort(buckets)
	return buckets, nil
}

// before compares on both clocks: the monotonic one stands still while a machine
// sleeps, and the wall's, by which other replicas judge, may be set back.
func before(a, b time.Time) bool { return a.Before(b) && a.Round(0).Before(b.Round(0)) }

func (s *Share) renew(ctx context.Context, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, renewWithin)
	defer cancel()
	if err := s.sit(ctx, now); err != nil {
		return err
	}
	replicas, err := s.leases.LiveLeases(ctx, s.seatQueue(), now, now.Add(leaseFor))
	if err != nil {
		return err
	}
	fair := (movement.Buckets + max(replicas, 1) - 1) / max(replicas, 1)
	var kept, others []int
	for i := range movement.Buckets {
		// Replicas begin at different buckets, so that they rarely want the same.
		bucket := (i + s.seat*fair) % movement.Buckets
		_, held := s.held[bucket]
		if held && len(s.held) > fair {
			delete(s.held, bucket)
			s.leaving[bucket], held = true, false
		}
		if held || s.leaving[bucket] && s.inUse(bucket) {
			kept = append(kept, bucket)
		}
		if !held {
			others = append(others, bucket)
		}
	}
	if err := s.take(ctx, kept, now); err != nil {
		return err
	}
	for len(s.held) < fair && len(others) > 0 {
		next := others[:min(fair-len(s.held), len(others))]
		others = others[len(next):]
		for _, bucket := range next {
			delete(s.leaving, bucket)
		}
		if err := s.take(ctx, next, now); err != nil {
			return err
		}
	}
	return nil
}

// take takes or renews leases. While the database does not answer, what we hold
// is ours as long as it was.
func (s *Share) take(ctx context.Context, buckets []int, now time.Time) error {
	if len(buckets) == 0 {
		return nil
	}
	until := now.Add(leaseFor)
	ours, err := s.leases.TakeLeases(ctx, store.Lease{Queue: s.queue, Buckets: buckets, Holder: s.replica}, now, until)
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		switch {
		case s.leaving[bucket]: // kept until it is not in use any more
		case slices.Contains(ours, bucket):
			s.held[bucket] = until
		default:
			delete(s.held, bucket)
		}
	}
	return nil
}

// leave drops the leases of buckets that are leaving and not in use any more.
// Where it can't, they run out by themselves.
func (s *Share) leave(ctx context.Context) {
	var idle []int
	for bucket := range s.leaving {
		if !s.inUse(bucket) {
			idle = append(idle, bucket)
		}
	}
	if s.drop(ctx, s.queue, idle) != nil {
		return
	}
	for _, bucket := range idle {
		delete(s.leaving, bucket)
	}
}

func (s *Share) drop(ctx context.Context, queue string, buckets []int) error {
	if len(buckets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return s.leases.DropLeases(ctx, store.Lease{Queue: queue, Buckets: buckets, Holder: s.replica})
}

// sit keeps the replica's seat, or takes the first that is free.
func (s *Share) sit(ctx context.Context, now time.Time) error {
	for try := range seats {
		seat := try
		if s.seat >= 0 {
			seat = (s.seat + try) % seats
		}
		lease := store.Lease{Queue: s.seatQueue(), Buckets: []int{seat}, Holder: s.replica}
		ours, err := s.leases.TakeLeases(ctx, lease, now, now.Add(leaseFor))
		if err != nil {
			return err
		}
		if len(ours) > 0 {
			s.seat = seat
			return nil
		}
	}
	return errors.New("worker: every seat is taken")
}

func (s *Share) seatQueue() string { return s.queue + "/seats" }

// Release gives everything back, so that others need not wait for the leases
// to run out.
func (s *Share) Release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	defer s.forget()
	if s.drop(ctx, s.queue, slices.Collect(maps.Keys(s.held))) != nil {
		return // they run out by themselves
	}
	s.leave(ctx)
	if s.seat >= 0 {
		_ = s.drop(ctx, s.seatQueue(), []int{s.seat}) // it runs out by itself
	}
}

// forget begins anew: the next Hold, if there is one, takes a seat first.
func (s *Share) forget() {
	clear(s.held)
	clear(s.leaving)
	s.seat, s.renewed = -1, time.Time{}
}
