package reconcile

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Unread finds the accounts whose statements are to be read.
type Unread interface {
	// UnreadStatements lists accounts whose statement nobody has read since before,
	// in the order of their ids, after one of them.
	UnreadStatements(ctx context.Context, after movement.AccountID, now, before time.Time, most int) ([]movement.Statement, error)
}

// Reader has the statements of all accounts read, also where nothing is sold: while
// something is, polls of the movements read them much more often.
type Reader struct {
	statements Unread
	read       func(ctx context.Context, s movement.Statement, before time.Time) error
	log        *slog.Logger
}

// NewReader makes a reader. Every replica may have one. Read reads an account's
// statement and applies what is in it, if nobody on any replica has read it since
// before.
func NewReader(statements Unread, read func(ctx context.Context, s movement.Statement, before time.Time) error, log *slog.Logger) *Reader {
	return &Reader{statements: statements, read: read, log: log}
}

const (
	// longestUnread is how long an account's statement stays unread at most.
	longestUnread = 6 * time.Hour
	// roundEvery is how often unread statements are looked for.
	roundEvery    = 10 * time.Minute
	statementPage = 200
	readsAtOnce   = 4
	listWithin    = 5 * time.Second
	readOneWithin = time.Minute // the next round goes on
)

// Run makes its rounds until the context ends.
func (r *Reader) Run(ctx context.Context) error {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for {
		r.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round has all statements read that are due.
func (r *Reader) round(ctx context.Context) {
	now := time.Now()
	before := now.Add(roundEvery - longestUnread) // by the next round it would be too long
	var after movement.AccountID
	for ctx.Err() == nil {
		listing, cancel := context.WithTimeout(ctx, listWithin)
		page, err := r.statements.UnreadStatements(listing, after, now, before, statementPage)
		cancel()
		if err != nil {
			r.warn(ctx, "list unread statements", err)
			return
		}
		if len(page) == 0 {
			return
		}
		r.readAll(ctx, page, before)
		after = page[len(page)-1].Account
	}
}

func (r *Reader) readAll(ctx context.Context, page []movement.Statement, before time.Time) {
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	for _, s := range page {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, readOneWithin)
			defer cancel()
			r.warn(ctx, "read the statement of "+s.MerchantID+" at "+s.Provider, lifecycle.Recovered(func() error { return r.read(ctx, s, before) }))
			return nil
		})
	}
	_ = group.Wait() // the functions have logged their errors
}

func (r *Reader) warn(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.log.WarnContext(ctx, "statements: "+what, "error", err)
	}
}
