package closing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/closing"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/queue"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// books have two pages of one account each, with so many days to close.
type books struct {
	open   map[string]int
	asked  []string
	others bool // another replica has the lease
	err    error
	never  string // the account whose days can't be closed
}

func (b *books) TakeLeases(_ context.Context, lease queue.Lease, now, until time.Time) ([]int, error) {
	if b.others {
		return nil, nil
	}
	if !until.After(now.Add(time.Minute)) {
		return nil, errors.New("shorter than a page may take")
	}
	return lease.Buckets, nil
}

func (b *books) CloseDays(_ context.Context, follows movement.Owner, now time.Time, _ int) (last movement.Owner, closed int, err error) {
	next := map[string]string{"": "a", "a": "b", "b": ""}[follows.MerchantID]
	b.asked = append(b.asked, fmt.Sprint(now.UTC().Format("02 15:04"), " ", next))
	if b.err != nil {
		return movement.Owner{}, 0, b.err
	}
	if next == b.never && next != "" {
		return movement.Owner{MerchantID: next}, 0, errors.New("too slow")
	}
	if b.open[next] > 0 {
		b.open[next]--
		closed = 1
	}
	return movement.Owner{MerchantID: next}, closed, nil
}

// Time begins at 2000-01-01 here, and a day ends at 17:00.
func TestEveryDayIsClosedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, log := &books{open: map[string]int{"a": 2, "b": 1}}, &queuetest.Log{}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- closing.New(b, "r", time.Now, slog.New(slog.NewTextHandler(log, nil))).Run(ctx) }()
		pass := func(wait time.Duration, want ...string) {
			t.Helper()
			b.asked = nil
			time.Sleep(wait)
			if synctest.Wait(); !slices.Equal(b.asked, want) {
				t.Errorf("asked %q, want %q", b.asked, want)
			}
		}
		pass(18*time.Hour+50*time.Minute, "01 00:10 a", "01 00:10 a", "01 00:10 a", "01 00:10 b", "01 00:10 b", "01 00:10 ")
		b.open["b"] = 1
		pass(10*time.Minute, "01 19:00 a", "01 19:00 b", "01 19:00 b", "01 19:00 ")
		pass(23 * time.Hour)
		b.err = errors.New("no database")
		pass(70*time.Minute, "02 19:00 a", "02 19:10 a")
		if n := log.Count("no database"); n != 2 {
			t.Errorf("complained %d times", n)
		}
		b.others, b.err = true, nil
		pass(10 * time.Minute)
		b.others = false
		pass(10*time.Minute, "02 19:30 a", "02 19:30 b", "02 19:30 ")
		b.never, b.open["b"] = "a", 1
		pass(24*time.Hour-10*time.Minute, "03 19:00 a", "03 19:00 b", "03 19:00 b", "03 19:00 ", "03 19:10 a", "03 19:10 b", "03 19:10 ", "03 19:20 a", "03 19:20 b", "03 19:20 ")
		if n := log.Count("too slow"); n != 3 {
			t.Errorf("complained %d times", n)
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
