package limit

import (
	"context"
	"log/slog"
	"time"
)

// UsageDropper removes usage of quotas and payout limits.
type UsageDropper interface {
	// DropUsage removes up to most counts of periods that are named before one, and
	// returns how many.
	DropUsage(ctx context.Context, before string, most int) (int64, error)
}

// Retention removes usage that nobody asks for any more. Every replica has one:
// what another has removed is not there, and it is one read a day.
type Retention struct {
	usage UsageDropper
	now   func() time.Time
	log   *slog.Logger
}

// NewRetention makes a retention.
func NewRetention(usage UsageDropper, now func() time.Time, log *slog.Logger) *Retention {
	return &Retention{usage: usage, now: now, log: log}
}

const (
	firstRemoval = time.Hour // after what a start has to do
	removeEvery  = 24 * time.Hour
	removeBatch  = 5000
	// keptMonths is for how many months after its own a count is kept: a year back
	// can be looked at, and what a movement counted can be given back for far longer
	// than one stays open.
	keptMonths = 13
	// dropWithin bounds one batch.
	dropWithin = time.Minute
)

// Run removes until the context ends.
func (r *Retention) Run(ctx context.Context) error {
	timer := time.NewTimer(firstRemoval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		r.remove(ctx)
		timer.Reset(removeEvery)
	}
}

func (r *Retention) remove(ctx context.Context) {
	year, month, _ := r.now().UTC().Date()
	before := time.Date(year, month-keptMonths, 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
	for {
		dropped, err := r.drop(ctx, before)
		if err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "limit: remove old usage", "error", err)
		}
		if err != nil || dropped < removeBatch {
			return
		}
	}
}

func (r *Retention) drop(ctx context.Context, before string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, dropWithin)
	defer cancel()
	return r.usage.DropUsage(ctx, before, removeBatch)
}
