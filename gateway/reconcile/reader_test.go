package reconcile_test

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
)

// accounts are some and when each was read last, in memory. Some can't be read.
type accounts struct {
	mu     sync.Mutex
	list   []movement.Statement // in the order of their ids
	read   map[movement.AccountID]time.Time
	times  map[movement.AccountID]int
	broken movement.AccountID
	harms  movement.AccountID
	err    error
}

func newAccounts(n int) *accounts {
	s := &accounts{read: map[movement.AccountID]time.Time{}, times: map[movement.AccountID]int{}}
	for i := range n {
		s.list = append(s.list, movement.Statement{Account: movement.AccountID{byte(i / 256), byte(i), 1}, MerchantID: "mer_1", Provider: "wallet2"})
	}
	return s
}

func (s *accounts) UnreadStatements(_ context.Context, after movement.AccountID, _, before time.Time, most int) (page []movement.Statement, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.list {
		if bytes.Compare(b.Account[:], after[:]) > 0 && !s.read[b.Account].After(before) && len(page) < most {
			page = append(page, b)
		}
	}
	return page, s.err
}

func (s *accounts) readOne(_ context.Context, b movement.Statement, before time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch b.Account {
	case s.broken:
		return queuetest.ErrAway
	case s.harms:
		panic("a report that nobody thought of")
	}
	if !s.read[b.Account].After(before) { // or another replica was faster
		s.read[b.Account] = time.Now()
		s.times[b.Account]++
	}
	return nil
}

// TestAllStatementsAreRead has more accounts than a page, two replicas, and one account
// that can't be read, and one that panics: all others are, once in each span.
func TestAllStatementsAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(450)
		s.broken, s.harms = s.list[7].Account, s.list[9].Account
		log := &queuetest.Log{}
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 2 {
			running.Go(func() {
				if err := reconcile.NewReader(s, s.readOne, slog.New(slog.NewTextHandler(log, nil))).Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(2*6*time.Hour + time.Minute) // of the bubble's clock
		cancel()
		running.Wait()
		for i, b := range s.list {
			want := 3
			if b.Account == s.broken || b.Account == s.harms {
				want = 0
			}
			if n := s.times[b.Account]; n != want {
				t.Errorf("account %d was read %d times", i, n)
			}
		}
		if log.Count("read the statement of mer_1 at wallet2") == 0 || log.Count("panic: a report that nobody thought of") == 0 {
			t.Errorf("logged %s", log)
		}
	})
}

// TestStatementsAreReadAfterAnOutage of the database.
func TestStatementsAreReadAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(3)
		s.err = queuetest.ErrAway
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = reconcile.NewReader(s, s.readOne, slog.New(slog.DiscardHandler)).Run(ctx) })
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
