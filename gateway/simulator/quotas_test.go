package simulator

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// quotaName is what a merchant's creations are counted by.
const quotaName = "calls"

// counted is what became of the unit of one creation.
type counted struct {
	usage    limit.Usage
	asked    bool
	admitted bool
	released bool
}

// quota is what a history knows of a merchant's units in a month.
type quota struct {
	kept   int64 // of creations that were sent, or may have been
	unsure int64 // of those that a crash may have left used
	given  []given
}

// given is a unit that a replica has to give back.
type given struct {
	by *replica
	at time.Time
}

// surelyGiven is how long a replica may need to give a unit back, with the database away.
const surelyGiven = 2 * time.Minute

// quotaOf is the usage of a merchant's creations at this time.
func (r *replica) quotaOf(m *merchant) limit.Usage {
	key := limit.Key{Merchant: m.owner().MerchantID, Mode: m.owner().Mode, Name: quotaName}
	return limit.Usage{Key: key, Period: limit.Month(r.w.now.Add(r.skew)).Name}
}

// admit runs a creation that a quota counts, as the edge does: what exists is answered
// from that, and what was never sent gives its unit back.
func (r *replica) admit(ctx context.Context, m *merchant, request lifecycle.Request, unit *counted) (lifecycle.Answer, error) {
	if request.NamesReference() {
		if told, stored, err := r.lifecycle.Stored(ctx, request); err != nil || stored {
			return told, err
		}
	}
	unit.usage, unit.asked = r.quotaOf(m), true
	taken, err := r.quotas.Reserve(ctx, unit.usage, m.quota)
	r.alive()
	switch {
	case err != nil:
		return lifecycle.Answer{}, fault.New(fault.Internal, "The request could not be judged. Try again later.").Because(err)
	case !taken.OK:
		return lifecycle.Answer{}, fault.New(fault.QuotaExceeded, "The quota is used up.")
	}
	unit.admitted = true
	told, err := r.lifecycle.Run(ctx, request)
	r.alive()
	if told.Replayed || told.Earlier || err != nil && fault.From(err).Sent == fault.SentNo {
		unit.released = true
		r.quotas.Release(ctx, unit.usage)
		r.alive()
	}
	return told, err
}

// count takes in what became of a creation's unit.
func (w *world) count(r *replica, unit counted, crashed bool) {
	if !unit.asked {
		return
	}
	q := w.books.quotas[unit.usage]
	if q == nil {
		q = &quota{}
		w.books.quotas[unit.usage] = q
		w.books.counted = append(w.books.counted, unit.usage)
	}
	switch {
	case crashed:
		q.unsure++
	case unit.admitted && !unit.released:
		q.kept++
	default: // or its caller has gone before it was told
		q.given = append(q.given, given{r, w.now})
	}
}

// checkQuotas: no more creations are sent than a quota admits, and what was never sent
// gives its unit back, unless its process crashed.
func (w *world) checkQuotas() {
	for _, u := range w.books.counted {
		q, name := w.books.quotas[u], w.books.owner(u.Merchant)
		unsure := q.unsure
		for _, g := range q.given {
			if g.by.dead && g.by.diedAt.Sub(g.at) < surelyGiven {
				unsure++
			}
		}
		used, err := w.store.UsedOf(w.ctx, movement.Owner{MerchantID: u.Merchant, Mode: u.Mode}, u.Name, u.Period)
		if most := w.quotaOf(u.Merchant); err != nil || q.kept > most || used > most || used < q.kept {
			w.violate("no quota is passed", "%s has sent %d of %d, and %d are used: %v", name, q.kept, most, used, err)
		}
		if used > q.kept+unsure && w.restores == 0 {
			w.violate("what was never sent gives its quota back", "%s has sent %d, at most %d are lost to crashes, and %d are used", name, q.kept, unsure, used)
		}
	}
}

func (w *world) quotaOf(id string) int64 {
	for _, m := range w.merchants {
		if m.owner().MerchantID == id {
			return m.quota
		}
	}
	return 0
}

// meter is the store as a replica's batcher has it. Its workers are no requests: a crash
// ends them by an error, and they do not stand still.
type meter struct {
	w     *world
	of    *replica
	tasks map[string]*task // by merchant
}

// newMeter names the workers of a process, which have numbers of their own.
func newMeter(w *world, of *replica) *meter {
	m := &meter{w, of, map[string]*task{}}
	for i, name := range []string{"A", "B", "C"} {
		m.tasks["mer_"+w.options.Prefix+name] = &task{-(10*w.started + i), "quota of " + name}
	}
	return m
}

// TakeUsage is for package limit.
func (m *meter) TakeUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, want, limit int64) (taken, used int64, err error) {
	err = m.count(ctx, owner, "take units", func() (err error) {
		if m.w.options.Bug == OverdrawnQuota && m.w.chance(30) {
			taken, used = want, want
			return nil
		}
		taken, used, err = m.w.store.TakeUsage(ctx, owner, name, period, replica, batch, want, limit)
		m.w.log("%d of %d units of %s are taken, %d are used", taken, want, m.w.books.owner(owner.MerchantID), used)
		return err
	})
	return taken, used, err
}

// GiveUsage is for package limit.
func (m *meter) GiveUsage(ctx context.Context, owner movement.Owner, name, period, replica string, batch, back int64) (taken int64, err error) {
	err = m.count(ctx, owner, "give units back", func() (err error) {
		if m.w.options.Bug == KeptQuota {
			return nil
		}
		taken, err = m.w.store.GiveUsage(ctx, owner, name, period, replica, batch, back)
		m.w.log("%d units of %s are given back", back, m.w.books.owner(owner.MerchantID))
		return err
	})
	return taken, err
}

// UsedOf is for package limit.
func (m *meter) UsedOf(ctx context.Context, owner movement.Owner, name, period string) (int64, error) {
	return m.w.store.UsedOf(ctx, owner, name, period)
}

// count runs a batch as a step. It may fail before it has happened or after, or be the
// process's last.
func (m *meter) count(ctx context.Context, owner movement.Owner, what string, do func() error) (err error) {
	if m.of.dead {
		return errAway
	}
	own := m.tasks[owner.MerchantID]
	m.w.step(context.WithValue(ctx, taskKey{}, own), nil, what, func() {
		fate := m.w.fate()
		switch {
		case m.of.dead || fate == failsBefore:
			err = errAway
		case ctx.Err() != nil:
			err = ctx.Err()
		case fate == crashesBefore:
			m.w.crash(m.of)
			err = errAway
		default:
			err = do()
		}
		m.w.log("%s: %s -> %v%s", own.name, what, err, fate)
		if fate == failsAfter && err == nil {
			err = errCut
		}
		if fate == crashesAfter {
			m.w.crash(m.of)
		}
		if err != nil {
			m.w.restful = m.w.now.Add(2 * time.Second)
		}
	})
	return err
}
