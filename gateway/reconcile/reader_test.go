package reconcile_test

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
)

// accounts are some whose statements are due every six hours, in memory. One can't be
// read, one panics, and those of one provider hang.
type accounts struct {
	mu     sync.Mutex
	due    map[movement.AccountID]movement.Statement
	times  map[movement.AccountID]int
	broken movement.AccountID
	harms  movement.AccountID
	err    error
	full   bool // nothing can be written
	tries  int
	let    chan struct{} // for those that hang
	most   int           // that have hung at once
	hang   int
}

func newAccounts(n int, provider string) *accounts {
	s := &accounts{due: map[movement.AccountID]movement.Statement{}, times: map[movement.AccountID]int{}, let: make(chan struct{})}
	s.add(n, provider)
	return s
}

func (s *accounts) add(n int, provider string) {
	for i := range n {
		id := movement.AccountID{byte(i), byte(i / 256), 1, provider[0]}
		s.due[id] = movement.Statement{Account: id, MerchantID: "mer_1", Mode: "live", Provider: provider, DueAt: time.Now()}
	}
}

// DueStatements implements reconcile.DueStatements.
func (s *accounts) DueStatements(_ context.Context, buckets []int, since, now time.Time, most int) (page []movement.Statement, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	read := map[int]int{}
	for _, b := range s.due {
		if bucket := b.Account.Bucket(); slices.Contains(buckets, bucket) && !b.DueAt.Before(since) && !b.DueAt.After(now) && read[bucket] < most {
			page, read[bucket] = append(page, b), read[bucket]+1
		}
	}
	slices.SortFunc(page, func(a, b movement.Statement) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), slices.Compare(a.Account[:], b.Account[:]))
	})
	return page, nil
}

func (s *accounts) read(_ context.Context, b movement.Statement) error {
	s.mu.Lock()
	if s.tries++; s.full {
		s.mu.Unlock()
		return queuetest.ErrAway
	}
	b.DueAt = time.Now().Add(time.Minute)
	s.due[b.Account] = b
	switch {
	case b.Account == s.broken:
		s.mu.Unlock()
		return queuetest.ErrAway
	case b.Account == s.harms:
		s.mu.Unlock()
		panic("a report that nobody thought of")
	case b.Provider == "hangs":
		s.hang++
		s.most = max(s.most, s.hang)
		s.mu.Unlock()
		<-s.let
		s.mu.Lock()
		s.hang--
	}
	b.DueAt = time.Now().Add(6 * time.Hour)
	s.due[b.Account] = b
	s.times[b.Account]++
	s.mu.Unlock()
	return nil
}

// run runs readers as long as then does.
func (s *accounts) run(t *testing.T, replicas int, then func()) *queuetest.Log {
	t.Helper()
	log, table := &queuetest.Log{}, queuetest.NewTable()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for i := range replicas {
		leases := queue.NewLeases(table, "statements", string(rune('a'+i)), movement.Buckets, time.Now)
		running.Go(func() {
			if err := reconcile.NewReader(s, s.read, leases, slog.New(slog.NewTextHandler(log, nil))).Run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	then()
	cancel()
	running.Wait()
	return log
}

// TestAllStatementsAreRead has two replicas, one account that can't be read, and one
// that panics: all others are read, once whenever they are due.
func TestAllStatementsAreRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(450, "wallet2")
		s.broken, s.harms = movement.AccountID{7, 0, 1, 'w'}, movement.AccountID{9, 0, 1, 'w'}
		log := s.run(t, 2, func() { time.Sleep(2*6*time.Hour + 5*time.Minute) }) // of the bubble's clock
		for id := range s.due {
			want := 3
			if id == s.broken || id == s.harms {
				want = 0
			}
			if n := s.times[id]; n != want {
				t.Errorf("account %v was read %d times", id, n)
			}
		}
		if log.Count("read the statement of mer_1 at wallet2") == 0 || log.Count("panic: a report that nobody thought of") == 0 {
			t.Errorf("logged %s", log)
		}
	})
}

// TestAStatementThatHangs holds up no other provider's, however many there are.
func TestAStatementThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(100, "hangs")
		s.add(100, "wallet2")
		s.run(t, 1, func() {
			time.Sleep(time.Minute)
			for id, b := range s.due {
				if n := s.times[id]; b.Provider == "wallet2" && n != 1 || b.Provider == "hangs" && n != 0 {
					t.Errorf("%v of %s was read %d times", id, b.Provider, n)
				}
			}
			close(s.let)
		})
		if s.most != 16 {
			t.Errorf("%d were read at once", s.most)
		}
	})
}

// TestUnwrittenReadingsAreNotBegunAtOnce: while nothing can be written, all that is due
// stays so, and is tried again once a second.
func TestUnwrittenReadingsAreNotBegunAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(100, "wallet2")
		s.full = true
		s.run(t, 1, func() { time.Sleep(10*time.Second + time.Millisecond) })
		if s.tries > 11*16 {
			t.Errorf("%d tries", s.tries)
		}
	})
}

// TestStatementsAreReadAfterAnOutage of the database.
func TestStatementsAreReadAfterAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAccounts(3, "wallet2")
		s.err = queuetest.ErrAway
		s.run(t, 1, func() {
			time.Sleep(time.Minute)
			s.mu.Lock()
			if len(s.times) != 0 {
				t.Errorf("%d were read", len(s.times))
			}
			s.err = nil
			s.mu.Unlock()
			time.Sleep(time.Hour)
		})
		if len(s.times) != 3 {
			t.Errorf("%d were read", len(s.times))
		}
	})
}
