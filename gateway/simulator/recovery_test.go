package simulator

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/memory"
)

// backup is the database as it stood at a time, and what the history knows of it.
type backup struct {
	at     time.Time
	step   int
	store  *memory.Store
	books  register
	called map[string]int
	events map[*merchant]int // how many each has read
}

var errNotOpened = errors.New("nobody has opened the restored database")

// planRecovery has the database go back to an earlier state, where it is one in memory,
// and tells whether it will. No account changes then: what a merchant's former account
// has, nobody asks that account for.
func (w *world) planRecovery(busy time.Duration) bool {
	if _, ours := w.store.(*memory.Store); !ours || !w.chance(20) {
		return false
	}
	after := w.between(10*time.Minute, busy)
	w.later(after, func() {
		kept := w.backUp()
		w.later(w.between(time.Minute, 2*time.Hour), func() { w.restore(kept) })
	})
	return true
}

func (w *world) backUp() backup {
	w.log("the database is backed up")
	kept := backup{w.now, w.steps, w.store.(*memory.Store).Copy(), w.books.copy(), maps.Clone(w.up.called), map[*merchant]int{}}
	for _, m := range w.merchants {
		kept.events[m] = len(m.events)
	}
	return kept
}

// restore ends all replicas and puts the backup in the database's place. What came after
// it is known to nobody but the providers: merchants' answers are forgotten, too, since
// none of them holds any more.
func (w *world) restore(kept backup) {
	w.log("the database is restored as it was at %v", kept.at.Sub(w.epoch).Truncate(time.Millisecond))
	for _, r := range w.replicas {
		w.crash(r)
	}
	w.restores++
	w.recovered, w.opened = w.now, w.now.Add(w.between(0, 10*time.Minute))
	w.store, w.statements, w.changed = kept.store, nil, w.now
	w.books.back(kept.books)
	w.up.called, w.up.polled = kept.called, map[[2]string]time.Time{}
	for _, t := range w.up.made {
		t.lost = t.lost || t.made.After(kept.at)
		t.unheard = t.unheard || t.heard.After(kept.at)
	}
	for _, m := range w.merchants {
		m.events = m.events[:kept.events[m]]
	}
	for _, in := range w.intents {
		in.answers = slices.DeleteFunc(in.answers, func(a answer) bool { return a.heard > kept.step })
	}
}

// recovering is why a replica moves no money, nil where it does.
func (w *world) recovering() error {
	if w.now.Before(w.opened) && w.options.Bug != UnopenedRestore {
		return errNotOpened
	}
	return nil
}

// restored is when the last recovery began, as a replica knows it.
func (w *world) restored() time.Time {
	if w.options.Bug == ForgottenRestore {
		return time.Time{}
	}
	return w.recovered
}

// copy is what the register knows of the database.
func (b *register) copy() register {
	kept := register{
		names: maps.Clone(b.names), ids: slices.Clone(b.ids), count: maps.Clone(b.count), logged: maps.Clone(b.logged),
		overridden: maps.Clone(b.overridden), resubmitted: maps.Clone(b.resubmitted), assigned: maps.Clone(b.assigned),
		resolved: map[movement.ID][]movement.Exception{}, ended: maps.Clone(b.ended), attempts: map[movement.ID]map[int]bool{},
		quotas: map[limit.Usage]*quota{}, counted: slices.Clone(b.counted),
	}
	for usage, q := range b.quotas {
		kept.quotas[usage] = new(*q)
	}
	for id, x := range b.resolved {
		kept.resolved[id] = slices.Clone(x)
	}
	for id, attempts := range b.attempts {
		kept.attempts[id] = maps.Clone(attempts)
	}
	return kept
}

// back has the register know what it knew.
func (b *register) back(kept register) {
	b.names, b.ids, b.count, b.logged, b.overridden, b.resubmitted = kept.names, kept.ids, kept.count, kept.logged, kept.overridden, kept.resubmitted
	b.assigned, b.resolved, b.ended, b.attempts = kept.assigned, kept.resolved, kept.ended, kept.attempts
	b.quotas, b.counted = kept.quotas, kept.counted
}
