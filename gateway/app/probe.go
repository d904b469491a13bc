package app

import (
	"context"
	"time"
)

const (
	// probeEvery is how soon a replica knows that its database can't take what moves money,
	// where no load balancer asks it more often.
	probeEvery = 2 * time.Second
	// probeWithin bounds a probe that the database does not answer.
	probeWithin = 2 * time.Second
)

// probe looks until the context ends whether the database is fit for moving money.
func (a *App) probe(ctx context.Context) error {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			a.look(ctx)
		}
	}
}

// look looks once, and logs what has changed since it was logged.
func (a *App) look(ctx context.Context) {
	probing, cancel := context.WithTimeout(ctx, probeWithin)
	defer cancel()
	_, _ = a.store.Probe(probing, a.replica, a.clock.Now()) // the store remembers what it comes to
	now := a.store.Unfit()
	switch {
	case !a.unfit && now != nil:
		a.log.ErrorContext(ctx, "no money is moved: "+now.Error()+"; reads go on")
	case a.unfit && now == nil:
		a.log.InfoContext(ctx, "the database is fit for money again")
	}
	a.unfit = now != nil
}
