package app

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/seed-f006e74d/gerbang/gateway/decision"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// recent is an answer that is shared for a while: who asks while it is made waits for it,
// as long as they like.
type recent[T any] struct {
	making singleflight.Group

	mu    sync.Mutex
	made  time.Time
	value T
}

// get is the answer, made anew where it is older than age. It is made for all who wait, so
// nobody's leaving ends it; what can't be made is an error to all of them.
func (r *recent[T]) get(ctx context.Context, now time.Time, age time.Duration, fresh func(context.Context) (T, error)) (T, error) {
	if value, ok := r.known(now, age); ok {
		return value, nil
	}
	done := r.making.DoChan("", func() (any, error) {
		if value, ok := r.known(now, age); ok { // it was made just before
			return value, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), makeWithin)
		defer cancel()
		value, err := fresh(ctx)
		if err == nil {
			r.mu.Lock()
			r.made, r.value = now, value
			r.mu.Unlock()
		}
		return value, err
	})
	select {
	case got := <-done:
		value, _ := got.Val.(T) // the zero one beside an error
		return value, got.Err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (r *recent[T]) known(now time.Time, age time.Duration) (value T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value, !r.made.IsZero() && now.Sub(r.made) < age
}

// makeWithin bounds the making of an answer that is shared.
const makeWithin = 10 * time.Second

const (
	// decidedFor is how long an answer of counts is shared: replicas write theirs as often.
	decidedFor = 10 * time.Second
	// decidedSpan is of how much of the past merchants see what was decided.
	decidedSpan = time.Hour
)

// decidedHour is what was decided on all merchants' requests since a minute.
type decidedHour struct {
	since time.Time
	tally decision.Tally
}

// decidedOf is what was decided on a merchant's requests in the last hour. Unpacking the
// counts of all merchants takes long beside showing a page, so one pass serves all who look.
func (a *App) decidedOf(ctx context.Context, id tenants.MerchantID) ([]decision.Sum, time.Time, error) {
	now := a.clock.Now()
	hour, err := a.hour.get(ctx, now, decidedFor, func(ctx context.Context) (*decidedHour, error) {
		hour := &decidedHour{since: now.Add(-decidedSpan).Truncate(time.Minute)}
		return hour, a.store.CountDecisions(ctx, hour.since, now.Add(time.Minute), hour.tally.Add)
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	return hour.tally.Of(string(id)), hour.since, nil
}

const (
	// trafficFor is how long a picture of the traffic is shared.
	trafficFor = 4 * time.Second
	// trafficSlice is as long as a replica keeps counts in memory alone, and trafficSlices are
	// ten minutes.
	trafficSlice  = 10 * time.Second
	trafficSlices = 60
	// measureEvery is how often this replica looks at its own metrics.
	measureEvery = 10 * time.Second
)

// traffic is what was decided on all merchants' requests in the last minutes, on all
// replicas. The newest slice has ended so long ago that all replicas have written it.
func (a *App) traffic(ctx context.Context) (*decision.Window, error) {
	now := a.clock.Now()
	return a.window.get(ctx, now, trafficFor, func(ctx context.Context) (*decision.Window, error) {
		w := decision.NewWindow(now.Truncate(trafficSlice).Add(-(trafficSlices+1)*trafficSlice), trafficSlice, trafficSlices)
		return w, a.store.CountDecisions(ctx, w.From.Truncate(time.Minute), now, w.Add)
	})
}

// measure keeps this replica's metrics of the last minutes.
func (a *App) measure(ctx context.Context) error {
	tick := time.NewTicker(measureEvery)
	defer tick.Stop()
	for {
		a.metrics.Measure(a.clock.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
