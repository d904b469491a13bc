package simulator

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/memory"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
)

// Options change what a history is like.
type Options struct {
	Store   func() storetest.Store // nil: in memory
	Intents int                    // how many movements merchants begin; 0: 20
	Outages int                    // how often the database is away; 0: as the seed draws
	Bug     Bug                    // that is planted
	Prefix  string                 // of merchants and accounts, where several histories share a store
}

// Violation is a broken invariant.
type Violation struct {
	Invariant string
	Detail    string
}

// Result is what became of a history.
type Result struct {
	Violations []Violation
	Trace      []string
	Steps      int
}

// Run plays the history of a seed.
func Run(t *testing.T, seed uint64, options Options) (result Result) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.Context(), seed, options)
		w.play()
		w.check()
		for _, r := range w.replicas {
			r.quotas.Close()
		}
		result = Result{Violations: w.violations, Trace: w.trace, Steps: w.steps}
	})
	return result
}

// world is one history. Only its own goroutine draws numbers and changes what is in it;
// all others run between two of its steps, until each waits for the next.
type world struct {
	ctx     context.Context
	options Options
	rand    *rand.Rand
	epoch   time.Time
	now     time.Time // as it was at the last step
	steps   int
	faults  bool // merchants, operators and faults are at work

	agenda  []event
	events  int
	tasks   int
	running int
	restful time.Time // until then somebody may wake by a timer
	away    time.Time // until then the database is away

	started   int       // processes
	restores  int       // of the database
	recovered time.Time // when the last of them was
	opened    time.Time // until then nobody has opened it

	mu     sync.Mutex
	parked []*parked

	store      storetest.Store
	up         *upstream
	replicas   []*replica
	merchants  []*merchant
	intents    []*intent
	books      *register
	trace      []string
	violations []Violation
	changed    time.Time // of the last change in the store
	resolving  map[movement.ID]int
	reading    map[movement.AccountID]int
	statements []movement.Statement // as the store has them, nil where they may have changed
}

// newWorld draws a history.
func newWorld(ctx context.Context, seed uint64, options Options) *world {
	if options.Intents == 0 {
		options.Intents = 20
	}
	w := &world{
		ctx: ctx, options: options, epoch: time.Now().UTC(), faults: true, resolving: map[movement.ID]int{}, reading: map[movement.AccountID]int{}, books: newRegister(options.Bug),
		rand: rand.New(rand.NewPCG(seed, 0)), // the same seed must draw the same
	}
	w.now, w.changed = w.epoch, w.epoch
	w.up = newUpstream(w)
	w.books.onEnd, w.books.onReserve = w.ended, w.reserved
	if options.Store == nil {
		kept := memory.New()
		kept.Draw = w.rand.IntN
		w.store = kept
	} else {
		w.store = options.Store()
	}
	w.open()
	w.plan()
	return w
}

// event is what happens at a time.
type event struct {
	at     time.Time
	number int
	what   func()
}

// parked is a goroutine that waits for its next step.
type parked struct {
	task   *task
	of     *replica // nil: it can't crash
	what   string
	ready  time.Time
	do     func()
	resume chan struct{}
}

// task is one request, poll or notification on its way through a replica.
type task struct {
	number int
	name   string
}

type taskKey struct{}

// crash ends what a replica runs.
type crash struct{}

// Odds of the main loop.
const (
	mostSteps  = 400_000
	smallStep  = 200 * time.Millisecond
	quietSpan  = 100 * 24 * time.Hour
	unchanging = 10 * 24 * time.Hour
)

// chance is true in a share of the draws.
func (w *world) chance(percent int) bool { return w.rand.IntN(100) < percent }

// between is a span of time, drawn.
func (w *world) between(least, most time.Duration) time.Duration {
	return least + time.Duration(w.rand.Int64N(int64(most-least+1)))
}

// later has something happen after a span of time.
func (w *world) later(after time.Duration, what func()) {
	w.events++
	w.agenda = append(w.agenda, event{w.now.Add(after), w.events, what})
}

// log adds a line to the trace.
func (w *world) log(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%14s  ", w.now.Sub(w.epoch).Truncate(time.Millisecond))+fmt.Sprintf(format, args...))
}

// violate notes a broken invariant.
func (w *world) violate(invariant, format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	w.log("VIOLATION of %q: %s", invariant, detail)
	w.violations = append(w.violations, Violation{invariant, detail})
}

// begin starts a task on a replica. Done runs as a step of its own when the task has
// ended, also by a crash.
func (w *world) begin(of *replica, name string, run func(ctx context.Context), done func(crashed bool)) context.CancelFunc {
	w.tasks++
	w.running++
	restores := w.restores
	t := &task{w.tasks, name}
	w.log("%s begins on replica %d", name, of.number)
	ctx, cancel := context.WithCancel(context.WithValue(w.ctx, taskKey{}, t))
	go func() {
		crashed := false
		func() {
			defer func() {
				if thrown := recover(); thrown != nil {
					if _, ours := thrown.(crash); !ours {
						panic(thrown)
					}
					crashed = true
				}
			}()
			run(ctx)
		}()
		crashed = crashed || of.dead
		w.step(ctx, nil, "end", func() {
			w.running--
			if crashed = crashed || restores != w.restores; crashed {
				w.log("%s: its replica has crashed", name)
			}
			done(crashed)
		})
		cancel()
	}()
	return cancel
}

// step waits until it is this goroutine's turn, and has the world do something then.
func (w *world) step(ctx context.Context, of *replica, what string, do func()) {
	w.wait(ctx, of, what, w.now, do)
}

// hold waits for a span of time.
func (w *world) hold(ctx context.Context, of *replica, what string, span time.Duration) {
	w.wait(ctx, of, what, w.now.Add(span), func() {})
}

func (w *world) wait(ctx context.Context, of *replica, what string, ready time.Time, do func()) {
	t, _ := ctx.Value(taskKey{}).(*task)
	p := &parked{t, of, what, ready, do, make(chan struct{})}
	w.mu.Lock()
	w.parked = append(w.parked, p)
	w.mu.Unlock()
	<-p.resume
	of.alive()
}

// advance lets time pass. Who wakes on the way still reads the time before.
func (w *world) advance(to time.Time) {
	if d := to.Sub(w.now); d > 0 {
		<-time.After(d) // of the bubble
		synctest.Wait()
		w.now = w.now.Add(d)
	}
}

// play runs the history to its end.
func (w *world) play() {
	ends := w.epoch.Add(quietSpan)
	for {
		synctest.Wait()
		if w.steps++; w.steps > mostSteps {
			w.violate("the history ends", "%d steps were not enough", mostSteps)
			w.stop()
			return
		}
		ready := w.ready()
		switch {
		case len(ready) > 0 && !w.chance(5):
			w.resume(ready[w.rand.IntN(len(ready))])
		case len(ready) > 0:
			w.advance(w.now.Add(w.between(time.Millisecond, 2*time.Second)))
			w.due()
		case w.running == 0 && len(w.parked) == 0 && (w.now.After(ends) || !w.faults && w.now.Sub(w.changed) > unchanging):
			return
		default:
			w.advance(w.next(ends))
			w.due()
		}
	}
}

// stop ends all that still runs.
func (w *world) stop() {
	for _, r := range w.replicas {
		r.dead = true
		go r.quotas.Close()
	}
	for synctest.Wait(); w.running > 0 || len(w.parked) > 0; synctest.Wait() {
		for _, p := range w.ready() {
			w.resume(p)
		}
		w.advance(w.now.Add(time.Minute))
	}
}

// ready are those whose turn it may be, in an order that does not go by chance.
func (w *world) ready() []*parked {
	ready := slices.DeleteFunc(slices.Clone(w.parked), func(p *parked) bool { return p.ready.After(w.now) })
	slices.SortFunc(ready, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.task.number, b.task.number), strings.Compare(a.what, b.what))
	})
	return ready
}

func (w *world) resume(p *parked) {
	if p.of != nil && w.faults && w.rand.IntN(400) == 0 { // the process stands still, or its network does
		p.ready = w.now.Add(w.between(5*time.Second, 20*time.Minute))
		w.log("%s: %s stands still until %v", p.task.name, p.what, p.ready.Sub(w.epoch).Truncate(time.Millisecond))
		return
	}
	w.parked = slices.DeleteFunc(w.parked, func(q *parked) bool { return q == p })
	if p.of == nil || !p.of.dead {
		p.do()
	}
	close(p.resume)
}

// next is when something may happen next.
func (w *world) next(ends time.Time) time.Time {
	next := ends.Add(time.Hour)
	for _, e := range w.agenda {
		next = earliest(next, e.at)
	}
	for _, p := range w.parked {
		next = earliest(next, p.ready)
	}
	if w.running > 0 || w.now.Before(w.restful) {
		return earliest(next, w.now.Add(smallStep))
	}
	next = earliest(next, w.nextPoll())
	if next.Before(w.now.Add(time.Millisecond)) {
		return w.now.Add(time.Millisecond)
	}
	return next
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// due runs what is on the agenda up to now, and polls.
func (w *world) due() {
	slices.SortFunc(w.agenda, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.number, b.number)) })
	n := 0
	for n < len(w.agenda) && !w.agenda[n].at.After(w.now) {
		n++
	}
	today := slices.Clone(w.agenda[:n])
	w.agenda = slices.Clone(w.agenda[n:])
	for _, e := range today {
		e.what()
	}
	w.poll()
	w.readStatements()
}
