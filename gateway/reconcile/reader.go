package reconcile

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
)

// DueStatements finds the accounts whose statements are to be read, the oldest first.
// Since is a lower bound that keeps the scan short, zero for none.
type DueStatements interface {
	DueStatements(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.Statement, error)
}

// Reader has the statements of the accounts read that are due in the buckets that its
// replica holds: for all sales of an account together. Nobody waits for a reading: one
// that hangs takes its upstream's places and no more.
type Reader struct {
	*queue.Runner[movement.Statement]

	read     func(ctx context.Context, s movement.Statement) error
	places   *queue.Places[movement.AccountID]
	readings sync.WaitGroup
}

const (
	lookEvery = time.Second
	// statementPage is how many due statements of a bucket are looked at: those that have
	// no place must not hide others. ReadingsOfUpstream is how many are read at once.
	statementPage      = 1000
	readOneWithin      = lifecycle.LongestPoll + 5*time.Second
	readingsOfUpstream = 16
)

// NewReader makes a reader. Read reads an account's statement and applies what is in it,
// and has it due again. An error leaves that to when the right to read it ends.
func NewReader(due DueStatements, read func(ctx context.Context, s movement.Statement) error, leases *queue.Leases, log *slog.Logger) *Reader {
	r := &Reader{read: read, places: queue.NewPlaces[movement.AccountID](func(string) int { return readingsOfUpstream })}
	// A bucket that another replica shall have waits for what is under way of it.
	leases.KeepWhile(func(bucket int) bool {
		return r.places.Any(func(account movement.AccountID) bool { return account.Bucket() == bucket })
	})
	r.Runner = queue.NewRunner(queue.Work[movement.Statement]{
		Name: "statements", Every: lookEvery, Page: statementPage, Handle: r.begin, Drain: r.readings.Wait,
		Due: func(ctx context.Context, b queue.Batch) ([]movement.Statement, error) {
			return due.DueStatements(ctx, b.Buckets, b.Since, b.Now, b.Most)
		},
	}, leases, log)
	return r
}

// begin has the statements of a page read for which there are places, and waits for
// none of them. The others are still due. All places are taken before any reading
// begins: one that fails at once leaves its place to the next page.
func (r *Reader) begin(ctx context.Context, page []movement.Statement) error {
	var placed []movement.Statement
	for _, s := range page {
		if r.places.Take(s.Account, s.Provider+"/"+s.Mode) {
			placed = append(placed, s)
		}
	}
	for _, s := range placed {
		r.readings.Go(func() {
			reading, cancel := context.WithTimeout(ctx, readOneWithin)
			defer cancel()
			err := lifecycle.Recovered(func() error { return r.read(reading, s) })
			r.Warn(ctx, "read the statement of "+s.MerchantID+" at "+s.Provider, err)
			if r.places.Free(s.Account) && err == nil { // what could not be written is due at once
				r.Wake() // for those that had no place
			}
		})
	}
	return nil
}
