package tenants

import (
	"context"
	"log/slog"
	"time"

	"github.com/maypok86/otter/v2"
)

const (
	// pollEvery leaves room for a load that overtook a poll to be found by the next one, well within the two seconds
	// in which a revoked key must stop.
	pollEvery = 500 * time.Millisecond
	// pollOverlap is how far back each poll looks before the last one: clocks differ and transactions last.
	pollOverlap = time.Minute
	pollTimeout = 5 * time.Second
	// freshFor is how long a replica may take money on what it last learnt.
	freshFor = 30 * time.Second
)

// Run polls the Source for changes until the context ends, and then returns nil. A poll that fails is tried again at
// the next tick; the log tells when polling begins to fail and when it works again.
func (d *Directory) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	failing := false
	for {
		err := d.poll(ctx, d.now())
		if ctx.Err() != nil {
			return nil
		}
		if failed := err != nil; failed != failing {
			failing = failed
			d.logPolling(ctx, err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (d *Directory) logPolling(ctx context.Context, err error) {
	if err != nil {
		d.log.WarnContext(ctx, "changes of merchants can't be read", slog.Any("error", err))
		return
	}
	d.log.InfoContext(ctx, "changes of merchants are read again")
}

// poll drops the accounts that have changed; who needs one reads it again.
func (d *Directory) poll(ctx context.Context, start time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	last := d.born
	if polled := d.polled.Load(); polled != nil {
		last = *polled
	}
	changes, err := d.source.ChangedSince(ctx, last.Add(-pollOverlap))
	if err != nil {
		return err
	}
	for _, change := range changes {
		d.drop(change)
	}
	d.polled.Store(&start)
	return nil
}

// drop forgets an account that is older than the change. The overlap brings most changes many times, and all but the
// first find a version that is new enough.
func (d *Directory) drop(change Change) {
	d.accounts.Compute(change.MerchantID, func(old *Account, found bool) (*Account, otter.ComputeOp) {
		if found && old.Version() < change.Version {
			return nil, otter.InvalidateOp
		}
		return old, otter.CancelOp
	})
}

// staleFor returns how long this replica has not learnt of changes. Wall clock and monotonic clock are both asked, where
// now has both, for the latter may stand still while a machine sleeps.
func (d *Directory) staleFor(now time.Time) time.Duration {
	last := d.born
	if polled := d.polled.Load(); polled != nil {
		last = *polled
	}
	return max(0, now.Sub(last), now.Round(0).Sub(last.Round(0)))
}

// Fresh reports whether money may be taken on what this replica knows: it has learnt of revocations within 30 seconds.
func (d *Directory) Fresh(now time.Time) bool {
	return d.polled.Load() != nil && d.staleFor(now) <= freshFor
}
