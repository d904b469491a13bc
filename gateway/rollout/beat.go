package rollout

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/trouble"
)

// Report writes this replica's row, which is its heartbeat. Any goroutine may call it.
func (f *Follower) Report(ctx context.Context) error {
	f.reporting.Lock() // what was read later is written later
	defer f.reporting.Unlock()
	self := f.deps.Self
	self.Policy, self.Plugins, self.SeenAt = f.active.Set().Version(), f.deps.Plugins(), f.deps.Now()
	self.Files = f.deps.Files()
	return f.deps.Store.ReportReplica(ctx, self)
}

// Beat says that this replica lives, every few seconds until the context ends, and then
// that it ends.
func (f *Follower) Beat(ctx context.Context) error {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	var beating trouble.Spell
	for {
		beating.Note(ctx, f.deps.Log, "this replica's heartbeat can't be written", f.beat(ctx))
		select {
		case <-ctx.Done():
			f.end(ctx)
			return nil
		case <-tick.C:
		}
	}
}

// end says that this replica ends; where it can't, it is taken to run for half a minute.
func (f *Follower) end(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := f.deps.Store.EndReplica(ctx, f.deps.Self.ID, f.deps.Now()); err != nil {
		f.deps.Log.WarnContext(ctx, "other replicas can't be told that this one ends", "error", err)
	}
}

func (f *Follower) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, beatEvery)
	defer cancel()
	if err := f.Report(ctx); err != nil {
		return err
	}
	asked := f.deps.Now()
	live, err := f.deps.Store.LiveReplicas(ctx, asked)
	if err != nil {
		return err
	}
	m := &membership{live: len(live), read: asked}
	for _, r := range live {
		if r.ID != f.deps.Self.ID {
			m.others = append(m.others, r.StartedAt)
		}
	}
	f.members.Store(m)
	if now := f.deps.Now(); now.Sub(f.inspected) >= inspectEvery {
		f.inspected = now
		return f.Inspect(ctx)
	}
	return nil
}
