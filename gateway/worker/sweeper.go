package worker

import (
	"context"
	"log/slog"
	"time"
)

// Counts is what merchants have used of quotas and limits, by period.
type Counts interface {
	DropUsage(ctx context.Context, before string, most int) (int64, error)
}

// Sweeper removes counts that nobody asks for any more. Every replica has one:
// what another has removed is not there, and a sweep is one read a day.
type Sweeper struct {
	counts Counts
	log    *slog.Logger
}

// NewSweeper makes a sweeper.
func NewSweeper(counts Counts, log *slog.Logger) *Sweeper { return &Sweeper{counts: counts, log: log} }

const (
	firstSweep = time.Hour // after what a start has to do
	sweepEvery = 24 * time.Hour
	sweepBatch = 5000
	// keptMonths is for how many months after its own a count is kept: a year back
	// can be looked at, and what a movement counted can be given back for far longer
	// than one stays open.
	keptMonths = 13
	// sweepWithin bounds one batch.
	sweepWithin = time.Minute
)

// Run sweeps until the context ends.
func (s *Sweeper) Run(ctx context.Context) error {
	timer := time.NewTimer(firstSweep)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		}
		s.sweep(ctx)
		timer.Reset(sweepEvery)
	}
}

func (s *Sweeper) sweep(ctx context.Context) {
	year, month, _ := time.Now().UTC().Date()
	before := time.Date(year, month-keptMonths, 1, 0, 0, 0, 0, time.UTC).Format("2006-01")
	for {
		dropped, err := s.drop(ctx, before)
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "worker: remove old counts", "error", err)
		}
		if err != nil || dropped < sweepBatch {
			return
		}
	}
}

func (s *Sweeper) drop(ctx context.Context, before string) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	return s.counts.DropUsage(ctx, before, sweepBatch)
}
