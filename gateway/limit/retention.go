package limit

import (
	"context"
	"log/slog"
	"time"
)

// Counts are usage of quotas and payout limits, and the buckets of rates.
type Counts interface {
	// DropUsage removes up to most counts of periods that are named before one, and
	// returns how many.
	DropUsage(ctx context.Context, before string, most int) (int64, error)
	// DropRates removes up to most buckets that are full and were not asked for an hour,
	// and returns how many.
	DropRates(ctx context.Context, most int) (int64, error)
}

// Retention removes what nobody asks for any more. Every replica has one: what another
// has removed is not there.
type Retention struct {
	counts Counts
	now    func() time.Time
	log    *slog.Logger
}

// NewRetention makes a retention.
func NewRetention(counts Counts, now func() time.Time, log *slog.Logger) *Retention {
	return &Retention{counts: counts, now: now, log: log}
}

const (
	// removeEvery is how often buckets are removed, the first time after what a start has
	// to do, and usageEvery how often usage is, counted in that.
	removeEvery = time.Hour
	usageEvery  = 24
	removeBatch = 5000
	// keptMonths is for how many months after its own a count is kept: a year back
	// can be looked at, and what a movement counted can be given back for far longer
	// than one stays open.
	keptMonths = 13
	// dropWithin bounds one batch.
	dropWithin = time.Minute
)

// Run removes until the context ends.
func (r *Retention) Run(ctx context.Context) error {
	tick := time.NewTicker(removeEvery)
	defer tick.Stop()
	for hour := 0; ; hour++ {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		r.remove(ctx, "buckets of rates", r.counts.DropRates)
		if hour%usageEvery == 0 {
			year, month, _ := r.now().UTC().Date()
			before := time.Date(year, month-keptMonths, 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
			r.remove(ctx, "usage", func(ctx context.Context, most int) (int64, error) { return r.counts.DropUsage(ctx, before, most) })
		}
	}
}

// remove removes one batch after another.
func (r *Retention) remove(ctx context.Context, what string, drop func(context.Context, int) (int64, error)) {
	batch := func() (int64, error) {
		ctx, cancel := context.WithTimeout(ctx, dropWithin)
		defer cancel()
		return drop(ctx, removeBatch)
	}
	for {
		dropped, err := batch()
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "limit: remove old "+what, "error", err)
		}
		if err != nil || dropped < removeBatch {
			return
		}
	}
}
