package store

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// The queues of a [Backlog].
const (
	PollQueue      = "polls"
	CallbackQueue  = "callbacks"
	MailQueue      = "mails"
	StatementQueue = "statements"
)

// Backlog is what waits, over all replicas.
type Backlog struct {
	Overdue   map[string]time.Duration   // for how long the first of a queue has been due, 0 for none
	Movements map[OpenKind]time.Duration // the age of the oldest that has not ended
	Callbacks map[string]time.Duration   // the age of the oldest that is undelivered and not given up, by mode
	Mail      time.Duration              // the age of the oldest that waits, 0 for none
}

// OpenKind names movements that have not ended.
type OpenKind struct{ Kind, Mode string }

// mostAccounts bounds how many accounts are gone through for the age of the oldest.
const mostAccounts = 20_000

// Backlog reads what waits. It costs a look at an index for each bucket, and for each
// account where something waits.
func (s *Store) Backlog(ctx context.Context, now time.Time) (b Backlog, err error) {
	age := func(since time.Time) time.Duration { return max(0, now.Sub(since)) }
	b = Backlog{
		Overdue:   map[string]time.Duration{PollQueue: 0, CallbackQueue: 0, MailQueue: 0, StatementQueue: 0},
		Movements: map[OpenKind]time.Duration{}, Callbacks: map[string]time.Duration{},
	}
	buckets := make([]int, movement.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	first, err := s.queries.OverdueSince(ctx, dbsqlc.OverdueSinceParams{Buckets: narrow(buckets), Now: micro(now)})
	if err != nil {
		return b, wrap("overdue", err)
	}
	for _, row := range first {
		b.Overdue[row.Queue] = max(b.Overdue[row.Queue], age(row.Since))
	}
	movements, err := s.queries.OldestOpenMovements(ctx, mostAccounts)
	if err != nil {
		return b, wrap("oldest movements", err)
	}
	for _, row := range movements {
		b.Movements[OpenKind{row.Kind, row.Mode}] = age(row.Oldest)
	}
	callbacks, err := s.queries.OldestWaitingCallbacks(ctx, mostAccounts)
	if err != nil {
		return b, wrap("oldest callbacks", err)
	}
	for _, row := range callbacks {
		b.Callbacks[row.Mode] = age(row.Oldest)
	}
	mail, err := s.queries.OldestWaitingMail(ctx, narrow(buckets))
	if err == nil && mail.Unix() > 0 {
		b.Mail = age(mail)
	}
	return b, wrap("oldest mail", err)
}
