package limit

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// memoryStore is a Store in memory, as the contract has it. Its before and after may fail
// a batch, before and after it was counted.
type memoryStore struct {
	mu            sync.Mutex
	used          map[Usage]int64
	marks         map[mark][2]int64 // batch, taken
	takes, gives  int
	before, after func() error
}

type mark struct {
	Usage
	replica string
}

func newMemoryStore() *memoryStore {
	return &memoryStore{used: map[Usage]int64{}, marks: map[mark][2]int64{}, before: fine, after: fine}
}

func fine() error { return nil }

// be sets how batches fail from now on.
func (b *memoryStore) be(before, after func() error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.before, b.after = before, after
}

func (b *memoryStore) TakeUsage(
	_ context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64,
) (taken, used int64, err error) {
	u := Usage{Key: Key{Merchant: owner.MerchantID, Mode: owner.Mode, Name: name}, Period: period}
	return b.count(mark{u, replica}, batch, &b.takes, func() int64 { return max(0, min(want, limit-b.used[u])) })
}

func (b *memoryStore) UsedOf(_ context.Context, owner movement.Owner, name, period string) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used[Usage{Key: Key{Merchant: owner.MerchantID, Mode: owner.Mode, Name: name}, Period: period}], nil
}

func (b *memoryStore) GiveUsage(_ context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (int64, error) {
	u := Usage{Key: Key{Merchant: owner.MerchantID, Mode: owner.Mode, Name: name}, Period: period}
	taken, _, err := b.count(mark{u, replica}, batch, &b.gives, func() int64 {
		b.used[u] -= back
		return 0
	})
	return taken, err
}

func (b *memoryStore) count(m mark, batch int64, sent *int, do func() int64) (taken, used int64, err error) {
	b.mu.Lock()
	before, after := b.before, b.after
	b.mu.Unlock()
	if err := before(); err != nil {
		return 0, 0, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	*sent++
	switch last := b.marks[m]; {
	case batch < last[0]:
		return 0, 0, errors.New("the numbers do not rise")
	case batch > last[0]:
		taken := do()
		b.used[m.Usage] += taken
		b.marks[m] = [2]int64{batch, taken}
	}
	if err := after(); err != nil {
		return 0, 0, err
	}
	return b.marks[m][1], b.used[m.Usage], nil
}

var november = Usage{Key: Key{Merchant: "mer_1", Mode: "live", Name: "names"}, Period: "2026-11"}

func newBatcher(b *memoryStore) *Batcher { return NewBatcher(b, slog.New(slog.DiscardHandler)) }

// gate holds batches until it is opened.
func (b *memoryStore) gate() (open func()) {
	shut := make(chan struct{})
	b.be(func() error {
		<-shut
		return nil
	}, fine)
	return func() { close(shut) }
}

// started is a reservation under way.
type started struct {
	Reservation
	err  error
	over bool
}

// reserve starts reservations one after the other, each once the one before waits.
func reserve(ctx context.Context, c *Batcher, limits ...int64) []*started {
	all := make([]*started, len(limits))
	for i, limit := range limits {
		all[i] = &started{}
		go func() {
			all[i].Reservation, all[i].err = c.Reserve(ctx, november, limit)
			all[i].over = true
		}()
		synctest.Wait()
	}
	return all
}

func TestConcurrentRequestsShareABatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		c := newBatcher(b)
		open := b.gate()
		all := reserve(t.Context(), c, slices.Repeat([]int64{40}, 64)...)
		open()
		synctest.Wait()
		for i, r := range all {
			want := started{over: true}
			if i < 40 {
				want.Reservation = Reservation{OK: true, Remaining: int64(39 - i)}
			}
			if *r != want {
				t.Errorf("the %d. has %+v, want %+v", i+1, *r, want)
			}
		}
		if b.takes != 2 || b.used[november] != 40 {
			t.Errorf("%d batches, %d used; want the first one alone and the other 63", b.takes, b.used[november])
		}
		if len(c.queues) != 0 {
			t.Errorf("%d queues are kept", len(c.queues))
		}
	})
}

func TestChangedLimitHoldsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		c := newBatcher(b)
		open := b.gate()
		all := reserve(t.Context(), c, 2, 2, 2, 4, 4, 1, 9)
		open()
		synctest.Wait()
		var got []Reservation
		for _, r := range all {
			got = append(got, r.Reservation)
		}
		want := []Reservation{{true, 1}, {true, 0}, {}, {true, 1}, {true, 0}, {}, {true, 4}}
		if !slices.Equal(got, want) || b.used[november] != 5 {
			t.Errorf("got %v, want %v; %d used", got, want, b.used[november])
		}
	})
}

func TestCancelledRequestUsesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		c := newBatcher(b)
		open := b.gate()
		ctx, cancel := context.WithCancel(t.Context())
		gone := reserve(ctx, c, 9, 9) // one in the batch that is sent, one that waits
		stays := reserve(t.Context(), c, 9)
		cancel()
		synctest.Wait()
		for i, r := range gone {
			if !r.over || !errors.Is(r.err, context.Canceled) {
				t.Errorf("the %d. is not gone: %+v", i+1, *r)
			}
		}
		open()
		synctest.Wait()
		if !stays[0].OK || b.used[november] != 1 {
			t.Errorf("%+v, %d used, want one", *stays[0], b.used[november])
		}
		if _, err := c.Reserve(ctx, november, 9); !errors.Is(err, context.Canceled) || b.used[november] != 1 {
			t.Errorf("a cancelled caller: %v, %d used", err, b.used[november])
		}
	})
}

// TestFailedBatchesUseNothing lets batches fail before and after they were
// counted: a request that got an error has used nothing in the end.
func TestFailedBatchesUseNothing(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	fail := func() error { return cut }
	for name, when := range map[string][2]func() error{"before it is counted": {fail, fine}, "after it was counted": {fine, fail}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newMemoryStore()
				c := newBatcher(b)
				for range 3 {
					if got, err := c.Reserve(t.Context(), november, 5); !got.OK || err != nil {
						t.Fatal(got, err)
					}
				}
				b.be(when[0], when[1])
				if got, err := c.Reserve(t.Context(), november, 5); got.OK || !errors.Is(err, cut) {
					t.Errorf("got %+v, %v", got, err)
				}
				c.Release(t.Context(), november) // in vain
				time.Sleep(5 * retryPause)
				b.be(fine, fine)
				time.Sleep(2 * retryPause)
				synctest.Wait()
				if used := b.used[november]; used != 2 || len(c.queues) != 0 {
					t.Errorf("%d used, %d queues; want 2 and none", used, len(c.queues))
				}
				for _, want := range []Reservation{{true, 2}, {true, 1}, {true, 0}, {}} {
					if got, err := c.Reserve(t.Context(), november, 5); got != want || err != nil {
						t.Errorf("then %+v, %v, want %+v", got, err, want)
					}
				}
			})
		})
	}
}

// TestUnansweredReleaseIsGivenUpInTime: the store forgets a batch after an hour, so it must
// not be sent again.
func TestUnansweredReleaseIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	cut := errors.New("cut")
	for away, want := range map[time.Duration]struct {
		used   int64
		warned bool
	}{retryFor - time.Minute: {used: 2}, retryFor + time.Minute: {used: 2, warned: true}} {
		synctest.Test(t, func(t *testing.T) {
			b := newMemoryStore()
			var log bytes.Buffer
			c := NewBatcher(b, slog.New(slog.NewTextHandler(&log, nil)))
			for range 3 {
				if got, err := c.Reserve(t.Context(), november, 5); !got.OK || err != nil {
					t.Fatal(got, err)
				}
			}
			b.be(fine, func() error { return cut })
			c.Release(t.Context(), november) // counted, without an answer
			b.be(func() error { return cut }, fine)
			time.Sleep(away)
			b.mu.Lock()
			if want.warned {
				clear(b.marks) // as a Store may, after an hour
			}
			b.mu.Unlock()
			b.be(fine, fine)
			time.Sleep(2 * retryPause)
			synctest.Wait()
			if used := b.used[november]; used != want.used || len(c.queues) != 0 {
				t.Errorf("after %v: %d used, %d queues; want %d and none", away, used, len(c.queues), want.used)
			}
			if warned := strings.Contains(log.String(), "may stay used") && strings.Contains(log.String(), "units=1"); warned != want.warned {
				t.Errorf("after %v: %q", away, &log)
			}
		})
	}
}

// TestUnansweredTakeIsGivenUpInTime: its units stay used, and the batch is not sent again.
func TestUnansweredTakeIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		var log bytes.Buffer
		c := NewBatcher(b, slog.New(slog.NewTextHandler(&log, nil)))
		cut := func() error { return errors.New("cut") }
		b.be(fine, cut)
		if got, err := c.Reserve(t.Context(), november, 5); got.OK || err == nil {
			t.Fatal(got, err)
		}
		b.be(cut, fine)
		time.Sleep(retryFor + time.Minute)
		b.be(fine, fine)
		c.Close()
		if b.used[november] != 1 || !strings.Contains(log.String(), "units=1") {
			t.Errorf("%d used: %q", b.used[november], &log)
		}
	})
}

// TestLeftTakesNothing: Left takes nothing, and below a lowered limit there is
// nothing, not less.
func TestLeftTakesNothing(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := newBatcher(b)
	defer c.Close()
	if got, err := c.Reserve(t.Context(), november, 5); !got.OK || err != nil {
		t.Fatal(got, err)
	}
	for limit, want := range map[int64]int64{5: 4, 1: 0, 0: 0} {
		if left, err := c.Left(t.Context(), november, limit); err != nil || left != want {
			t.Errorf("%d of %d are left, %v", left, limit, err)
		}
	}
	if b.used[november] != 1 {
		t.Errorf("%d used", b.used[november])
	}
}

func TestReleasedUnitIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		c := newBatcher(b)
		for range 3 {
			if got, err := c.Reserve(t.Context(), november, 1); got != (Reservation{OK: true}) || err != nil {
				t.Fatal(got, err)
			}
			if got, _ := c.Reserve(t.Context(), november, 1); got.OK {
				t.Fatal("there are two")
			}
			c.Release(t.Context(), november)
		}
		open := b.gate()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		reserve(t.Context(), c, 9)
		c.Release(ctx, november) // a cancelled caller does not wait
		open()
		synctest.Wait()
		if b.used[november] != 0 {
			t.Errorf("%d used", b.used[november])
		}
	})
}

func TestCloseGivesOwedUnitsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		var log bytes.Buffer
		c := NewBatcher(b, slog.New(slog.NewTextHandler(&log, nil)))
		if got, err := c.Reserve(t.Context(), november, 9); !got.OK || err != nil {
			t.Fatal(got, err)
		}
		b.be(func() error { return errors.New("down") }, fine)
		c.Release(t.Context(), november)
		synctest.Wait()
		b.be(fine, fine)
		c.Close()
		c.Close()
		if b.used[november] != 0 || log.Len() > 0 {
			t.Errorf("%d used: %s", b.used[november], &log)
		}
		if _, err := c.Reserve(t.Context(), november, 9); !errors.Is(err, errClosed) {
			t.Errorf("after the end: %v", err)
		}
		c.Release(t.Context(), november)
		if !strings.Contains(log.String(), "not given back") {
			t.Errorf("no warning: %q", &log)
		}
	})
}

func TestCloseEndsWithoutTheDatabase(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newMemoryStore()
		var log bytes.Buffer
		c := NewBatcher(b, slog.New(slog.NewTextHandler(&log, nil)))
		b.be(func() error {
			time.Sleep(time.Millisecond)
			return errors.New("down")
		}, fine)
		all := reserve(t.Context(), c, 9, 9)
		c.Release(t.Context(), november)
		c.Close()
		synctest.Wait()
		for _, r := range all {
			if r.err == nil || !r.over {
				t.Errorf("got %+v", *r)
			}
		}
		// One that was to be given back, and one that may be taken.
		if !strings.Contains(log.String(), "units=2") {
			t.Errorf("no warning: %q", &log)
		}
	})
}

func TestUsagesAreSeparate(t *testing.T) {
	t.Parallel()
	b := newMemoryStore()
	c := newBatcher(b)
	for _, u := range []Usage{
		november, {november.Key, "2026-12"}, {Key{"mer_1", "test", "names"}, "2026-11"},
		{Key{"mer_2", "live", "names"}, "2026-11"}, {Key{"mer_1", "live", "other"}, "2026-11"},
	} {
		if got, err := c.Reserve(t.Context(), u, 1); !got.OK || err != nil {
			t.Errorf("%v: %+v, %v", u, got, err)
		}
	}
	if len(b.used) != 5 {
		t.Errorf("%d usages, want 5", len(b.used))
	}
}
