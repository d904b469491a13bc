package store

import (
	"context"
	"fmt"
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

// Backlog is what is due, over all replicas.
type Backlog struct {
	Overdue map[string]time.Duration // for how long the first of a queue has been due, 0 for none
	Mail    time.Duration            // the age of the oldest that waits, 0 for none
}

// Oldest is what waits longest, over all replicas.
type Oldest struct {
	Movements map[OpenKind]time.Duration // the age of the oldest that has not ended
	Callbacks map[string]time.Duration   // the age of the oldest that is undelivered and not given up, by mode
}

// OpenKind names movements that have not ended.
type OpenKind struct{ Kind, Mode string }

// mostAccounts bounds how many accounts are gone through for the age of the oldest.
const mostAccounts = 20_000

// errTooManyAccounts says that the oldest may be one that was not looked at.
var errTooManyAccounts = fmt.Errorf("store: oldest: more than %d accounts have something open", mostAccounts)

func ageAt(now, since time.Time) time.Duration { return max(0, now.Sub(since)) }

// Backlog reads what is due. It costs a look at an index for each bucket.
func (s *Store) Backlog(ctx context.Context, now time.Time) (b Backlog, err error) {
	b.Overdue = map[string]time.Duration{PollQueue: 0, CallbackQueue: 0, MailQueue: 0, StatementQueue: 0}
	buckets := make([]int, movement.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	first, err := s.queries.OverdueSince(ctx, dbsqlc.OverdueSinceParams{Buckets: narrow(buckets), Now: micro(now)})
	if err != nil {
		return b, wrap("overdue", err)
	}
	for _, row := range first {
		b.Overdue[row.Queue] = max(b.Overdue[row.Queue], ageAt(now, row.Since))
	}
	mail, err := s.queries.OldestWaitingMail(ctx, narrow(buckets))
	if err == nil && mail.Unix() > 0 {
		b.Mail = ageAt(now, mail)
	}
	return b, wrap("oldest mail", err)
}

// Oldest reads what waits longest. It costs a look at an index for each account where something waits, and is an error where there are too
// many of these: it would tell the age of another one.
func (s *Store) Oldest(ctx context.Context, now time.Time) (Oldest, error) {
	return s.oldest(ctx, now, mostAccounts)
}

func (s *Store) oldest(ctx context.Context, now time.Time, most int64) (o Oldest, err error) {
	o = Oldest{Movements: map[OpenKind]time.Duration{}, Callbacks: map[string]time.Duration{}}
	movements, err := s.queries.OldestOpenMovements(ctx, most)
	if err != nil {
		return o, wrap("oldest movements", err)
	}
	for _, row := range movements {
		if row.Steps >= most {
			return o, errTooManyAccounts
		}
		o.Movements[OpenKind{row.Kind, row.Mode}] = ageAt(now, row.Oldest)
	}
	callbacks, err := s.queries.OldestWaitingCallbacks(ctx, most)
	if err != nil {
		return o, wrap("oldest callbacks", err)
	}
	for _, row := range callbacks {
		if row.Steps >= most {
			return o, errTooManyAccounts
		}
		if row.Oldest.Unix() > 0 {
			o.Callbacks[row.Mode] = ageAt(now, row.Oldest)
		}
	}
	return o, nil
}
