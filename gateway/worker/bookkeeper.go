package worker

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// Shelf lists accounts whose books nobody has read since before, in the order of
// their ids after one.
type Shelf interface {
	UnreadStatements(ctx context.Context, after movement.AccountID, now, before time.Time, most int) ([]movement.Statement, error)
}

// BookReader reads an account's books and settles what stands in them, if nobody
// on any replica has read them since before.
type BookReader interface {
	Read(ctx context.Context, b movement.Statement, before time.Time) error
}

// Bookkeeper has the books of all accounts read, also where nothing is sold: while
// something is, the movements' own looks read them much more often.
type Bookkeeper struct {
	shelf  Shelf
	reader BookReader
	log    *slog.Logger
}

// NewBookkeeper makes a bookkeeper. Every replica may have one.
func NewBookkeeper(shelf Shelf, reader BookReader, log *slog.Logger) *Bookkeeper {
	return &Bookkeeper{shelf: shelf, reader: reader, log: log}
}

const (
	// QuietFor is how long an account's books are not read at most.
	QuietFor = 6 * time.Hour
	// roundEvery is how often that is looked for.
	roundEvery = 10 * time.Minute
	booksPage  = 200
	booksOnce  = 4
	bookWithin = time.Minute // the next round goes on
)

// Run makes its rounds until the context ends.
func (k *Bookkeeper) Run(ctx context.Context) error {
	ticker := time.NewTicker(roundEvery)
	defer ticker.Stop()
	for {
		k.round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// round has all books read that are due.
func (k *Bookkeeper) round(ctx context.Context) {
	now := time.Now()
	before := now.Add(roundEvery - QuietFor) // by the next round it would be too long
	var after movement.AccountID
	for ctx.Err() == nil {
		reading, cancel := context.WithTimeout(ctx, readWithin)
		page, err := k.shelf.UnreadStatements(reading, after, now, before, booksPage)
		cancel()
		if err != nil {
			k.complain(ctx, "list the books", err)
			return
		}
		if len(page) == 0 {
			return
		}
		k.read(ctx, page, before)
		after = page[len(page)-1].Account
	}
}

func (k *Bookkeeper) read(ctx context.Context, page []movement.Statement, before time.Time) {
	var group errgroup.Group
	group.SetLimit(booksOnce)
	for _, b := range page {
		group.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, bookWithin)
			defer cancel()
			k.complain(ctx, "read the books of "+b.MerchantID+" at "+b.Provider, k.reader.Read(ctx, b, before))
			return nil
		})
	}
	_ = group.Wait() // the functions complain themselves
}

func (k *Bookkeeper) complain(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		k.log.WarnContext(ctx, "bookkeeper: "+what, "error", err)
	}
}
