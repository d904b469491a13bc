package limit_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/queue/queuetest"
)

// oldCounts is a number of counts that are too old.
type oldCounts struct {
	left  int64
	err   error
	asked []string

	full, hours int64 // buckets, and how often they were asked for
}

func (c *oldCounts) DropRates(ctx context.Context, most int) (int64, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return 0, errors.New("without an end")
	}
	dropped := min(c.full, int64(most))
	c.full -= dropped
	if dropped < int64(most) {
		c.hours++
	}
	return dropped, nil
}

func (c *oldCounts) DropUsage(ctx context.Context, before string, most int) (int64, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return 0, errors.New("without an end")
	}
	c.asked = append(c.asked, time.Now().UTC().Format(time.DateTime)+" before "+before)
	dropped := min(c.left, int64(most))
	c.left -= dropped
	return dropped, c.err
}

// Time begins at 2000-01-01 here.
func TestOldUsageIsRemovedDailyAndBucketsHourly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		counts, log := &oldCounts{left: 12_000, full: 11_000}, &queuetest.Log{}
		ctx, end := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- limit.NewRetention(counts, time.Now, slog.New(slog.NewTextHandler(log, nil))).Run(ctx) }()
		time.Sleep(2*time.Hour + time.Minute)
		want := []string{"2000-01-01 01:00:00 before 1998-12", "2000-01-01 01:00:00 before 1998-12", "2000-01-01 01:00:00 before 1998-12"}
		if !slices.Equal(counts.asked, want) || counts.left != 0 {
			t.Errorf("asked %q, %d are left", counts.asked, counts.left)
		}
		if counts.full != 0 || counts.hours != 2 {
			t.Errorf("%d full buckets are left after %d hours", counts.full, counts.hours)
		}
		counts.asked, counts.err = nil, errors.New("no database")
		time.Sleep(31 * 24 * time.Hour)
		if n := len(counts.asked); n != 31 || counts.asked[30] != "2000-02-01 01:00:00 before 1999-01" || log.Count("no database") != 31 {
			t.Errorf("asked %d times, %q; complained %d times", n, counts.asked, log.Count("no database"))
		}
		end()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
