package worker_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/worker"
)

// shelf is accounts and when each was read last, in memory. Some can't be read.
type shelf struct {
	mu     sync.Mutex
	books  []movement.Statement // in the order of their ids
	read   map[movement.AccountID]time.Time
	times  map[movement.AccountID]int
	broken movement.AccountID
	err    error
}

func newShelf(n int) *shelf {
	s := &shelf{read: map[movement.AccountID]time.Time{}, times: map[movement.AccountID]int{}}
	for i := range n {
		s.books = append(s.books, movement.Statement{Account: movement.AccountID{byte(i / 256), byte(i), 1}, MerchantID: "mer_1", Provider: "wallet2"})
	}
	return s
}

func (s *shelf) UnreadStatements(_ context.Context, after movement.AccountID, _, before time.Time, most int) (page []movement.Statement, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		if bytes.Compare(b.Account[:], after[:]) > 0 && !s.read[b.Account].After(before) && len(page) < most {
			page = append(page, b)
		}
	}
	return page, s.err
}

func (s *shelf) Read(_ context.Context, b movement.Statement, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b.Account == s.broken {
		return errAway
	}
	if !s.read[b.Account].After(before) { // or another replica was faster
		s.read[b.Account] = time.Now()
		s.times[b.Account]++
	}
	return nil
}

// TestAllBooksAreRead has more accounts than a page, two replicas, and one account
// that can't be read: all others are, once in each span.
func TestAllBooksAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(450)
		s.broken = s.books[7].Account
		var log bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if err := worker.NewBookkeeper(s, s, slog.New(slog.NewTextHandler(&guarded{to: &log}, nil))).Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2*worker.QuietFor + time.Minute) // of the bubble's clock
		cancel()
		running.Wait()
		for i, b := range s.books {
			if n := s.times[b.Account]; n != 3 && b.Account != s.broken || b.Account == s.broken && n != 0 {
				t.Errorf("account %d was read %d times", i, n)
			}
		}
		if !strings.Contains(log.String(), "read the books of mer_1 at wallet2") {
			t.Errorf("logged %s", log.String())
		}
	})
}

// TestBooksAreReadAfterAnOutage of the database.
func TestBooksAreReadAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newShelf(3)
		s.err = errAway
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = worker.NewBookkeeper(s, s, slog.New(slog.DiscardHandler)).Run(ctx) })
		time.Sleep(time.Minute)
		s.mu.Lock()
		if len(s.read) != 0 {
			t.Errorf("%d were read", len(s.read))
		}
		s.err = nil
		s.mu.Unlock()
		time.Sleep(time.Hour)
		cancel()
		running.Wait()
		if len(s.read) != 3 {
			t.Errorf("%d were read", len(s.read))
		}
	})
}

// guarded is a writer for several at once.
type guarded struct {
	mu sync.Mutex
	to *bytes.Buffer
}

func (g *guarded) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.to.Write(p)
}
