package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/cache"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/override"
	"github.com/seed-f006e74d/gerbang/gateway/query"
	"github.com/seed-f006e74d/gerbang/gateway/reconcile"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// replica is a process of the gateway until it crashes. Its successor has its number.
type replica struct {
	w      *world
	number int
	dead   bool
	diedAt time.Time
	skew   time.Duration

	lifecycle  *lifecycle.Lifecycle
	reconciler *reconcile.Reconciler
	overrides  *override.Overrides
	queries    *query.Queries
	store      *gate
	quotas     *limit.Batcher
}

// alive panics where the process has crashed.
func (r *replica) alive() {
	if r != nil && r.dead {
		panic(crash{})
	}
}

var errClock = errors.New("the clock is wrong")

// start makes a process.
func (w *world) start(number int) *replica {
	w.started++
	r := &replica{w: w, number: number, skew: w.between(-movement.ClockSkew, movement.ClockSkew)}
	if w.faults && number > 0 && w.chance(7) { // where no clock is right, nothing goes on
		r.skew = w.between(movement.ClockSkew, time.Minute)
		if w.chance(50) {
			r.skew = -r.skew
		}
	}
	w.log("replica %d starts, its clock %v off", number, r.skew.Truncate(time.Millisecond))
	kept, plugins := &gate{Store: w.store, w: w, of: r}, &plugins{w, r}
	r.lifecycle = lifecycle.New(lifecycle.Dependencies{
		Store: kept, Providers: plugins, Accounts: w.books, Vault: w.books, Catalog: w.books.catalog, MailCommitted: func() {},
		ClockFault: func() error {
			if r.skew.Abs() > movement.ClockSkew {
				return errClock
			}
			return nil
		},
		Recovering: w.recovering, Restored: w.restored,
		Now: func() time.Time { return w.now.Add(r.skew) }, Log: slog.New(slog.DiscardHandler),
	})
	r.quotas = limit.NewBatcher(newMeter(w, r), slog.New(slog.DiscardHandler))
	r.lifecycle.Patience.Draw = func(n int) int { return n / 2 } // who asks first is chance, so each draws the same
	r.reconciler = reconcile.New(r.lifecycle, plugins, kept, kept)
	r.overrides = override.New(r.lifecycle, kept)
	kind.AddPayment(r.lifecycle, "https://gate.example")
	kind.AddCollection(r.lifecycle, r.reconciler)
	r.store, r.queries = kept, query.New(r.lifecycle, shelf{w}, kept)
	kind.AddOrder(r.lifecycle, r.queries)
	kind.AddRefund(r.lifecycle, kept)
	kind.AddTransfer(r.lifecycle, kept, reconcile.NewAbsences(r.lifecycle, plugins, kept))
	return r
}

// shelf has the list of products.
type shelf struct{ w *world }

func (s shelf) Get(context.Context, cache.Key, time.Duration, func(context.Context) (json.RawMessage, error)) (cache.Answer, error) {
	return cache.Answer{Body: products, FetchedAt: s.w.now, Version: "1"}, nil
}

// crash ends a process, and starts another after a while.
func (w *world) crash(r *replica) {
	if r.dead {
		return
	}
	r.dead, r.diedAt = true, w.now
	go r.quotas.Close() // which ends its workers
	w.log("replica %d crashes", r.number)
	w.later(w.between(time.Second, 30*time.Second), func() { w.replicas[r.number] = w.start(r.number) })
}

// someReplica is one that runs, nil where none does.
func (w *world) someReplica() *replica {
	running := slices.DeleteFunc(slices.Clone(w.replicas), func(r *replica) bool { return r.dead })
	if len(running) == 0 {
		return nil
	}
	return running[w.rand.IntN(len(running))]
}

var everyQueue = func() (all []movement.QueuePlace) {
	for i := range movement.Buckets {
		all = append(all, movement.QueuePlace{Bucket: i})
	}
	return all
}()

// nextPoll is when the next movement or statement is due, by a right clock, but not
// before a second has passed; never where none is.
func (w *world) nextPoll() time.Time {
	ever := w.epoch.Add(10 * quietSpan)
	next := ever
	if due := w.dueBefore(ever); len(due) > 0 {
		next = due[0].DueAt
	}
	if due := w.dueStatements(ever); len(due) > 0 {
		next = earliest(next, due[0].DueAt)
	}
	if soonest := w.now.Add(time.Second); next.Before(soonest) {
		return soonest
	}
	return next
}

// dueBefore are the movements of this history that are due before a time; others may
// share its store.
func (w *world) dueBefore(now time.Time) []movement.Movement {
	polls, err := w.store.Due(w.ctx, movement.DueScan{From: everyQueue, Now: now, Most: 10_000})
	if err != nil {
		w.violate("the store answers", "%v", err)
	}
	var ids []movement.ID
	for _, poll := range polls {
		if w.books.names[poll.ID] != "" {
			ids = append(ids, poll.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	due, err := w.store.MovementsByID(w.ctx, ids)
	if err != nil {
		w.violate("the store answers", "%v", err)
	}
	slices.SortFunc(due, func(a, b movement.Movement) int { // not by ids, which are random
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(w.books.names[a.ID], w.books.names[b.ID]))
	})
	return due
}

// poll has a replica poll what is due.
func (w *world) poll() {
	r := w.someReplica()
	if r == nil {
		return
	}
	for _, m := range w.dueBefore(w.now.Add(r.skew)) {
		if w.resolving[m.ID] > 0 && !(w.faults && w.resolving[m.ID] < 2 && w.chance(10)) {
			continue
		}
		w.resolving[m.ID]++
		w.begin(r, "poll of "+w.books.name(m.ID), func(ctx context.Context) {
			ctx, cancel := context.WithTimeout(ctx, lifecycle.LongestPoll)
			defer cancel()
			_ = r.lifecycle.Resolve(ctx, m) // it is due again
		}, func(bool) { w.resolving[m.ID]-- })
	}
}

// dueStatements are the statements of this history that are due before a time.
func (w *world) dueStatements(now time.Time) []movement.Statement {
	all := w.statements
	if all == nil {
		all = w.readings()
		w.statements = all
	}
	due := slices.IndexFunc(all, func(s movement.Statement) bool { return s.DueAt.After(now) })
	if due < 0 {
		due = len(all)
	}
	return all[:due]
}

// readings are the statements of this history, in the order in which they are due.
func (w *world) readings() []movement.Statement {
	buckets := make([]int, movement.Buckets)
	for i := range buckets {
		buckets[i] = i
	}
	all, err := w.store.DueStatements(w.ctx, buckets, time.Time{}, w.epoch.Add(10*quietSpan), 10_000)
	if err != nil {
		w.violate("the store answers", "%v", err)
	}
	all = slices.DeleteFunc(all, func(s movement.Statement) bool { return w.books.accounts[s.Account] == "" })
	slices.SortFunc(all, func(a, b movement.Statement) int {
		return cmp.Or(a.DueAt.Compare(b.DueAt), cmp.Compare(w.books.accounts[a.Account], w.books.accounts[b.Account]))
	})
	return append([]movement.Statement{}, all...)
}

// readStatements has a replica read the statements that are due.
func (w *world) readStatements() {
	r := w.someReplica()
	if r == nil {
		return
	}
	for _, s := range w.dueStatements(w.now.Add(r.skew)) {
		if w.reading[s.Account] > 0 && !(w.faults && w.reading[s.Account] < 2 && w.chance(10)) {
			continue
		}
		w.reading[s.Account]++
		w.begin(r, "reading of the statement of "+w.books.accounts[s.Account], func(ctx context.Context) {
			_ = r.reconciler.Read(ctx, s) // it is due again
		}, func(bool) { w.reading[s.Account]-- })
	}
}

var errAway, errCut = errors.New("the database is away"), errors.New("the connection was cut during the commit")

// gate is a store as a replica has it: each write is a step, and may fail, before it
// has happened or after, or be the process's last.
type gate struct {
	storetest.Store
	w  *world
	of *replica
}

// write runs a write as a step.
func write[T any](ctx context.Context, g *gate, what string, do func() (T, error)) (result T, err error) {
	g.w.step(ctx, g.of, what, func() {
		t, _ := ctx.Value(taskKey{}).(*task)
		fate := g.w.fate()
		switch {
		case ctx.Err() != nil:
			err = ctx.Err()
			return
		case fate == crashesBefore:
			g.w.log("%s: %s does not happen", t.name, what)
			g.w.crash(g.of)
			return
		case fate == failsBefore:
			err = errAway
		default:
			result, err = do()
		}
		g.w.log("%s: %s -> %s, %v%s", t.name, what, g.w.books.show(result), err, fate)
		if fate == failsAfter && err == nil {
			err = errCut
		}
		if fate == crashesAfter {
			g.w.crash(g.of)
		}
		if err != nil {
			g.w.restful = g.w.now.Add(2 * time.Second)
		}
	})
	return result, err
}

// fate is what becomes of a write.
type fate string

const (
	happens       fate = ""
	failsBefore   fate = " (it did not happen)"
	failsAfter    fate = " (it happened, and its caller hears an error)"
	crashesBefore fate = " (before a crash)"
	crashesAfter  fate = " (the process's last)"
)

func (w *world) fate() fate {
	switch {
	case w.now.Before(w.away):
		return failsBefore
	case !w.faults:
		return happens
	}
	switch n := w.rand.IntN(1000); {
	case n < 12:
		return failsBefore
	case n < 24:
		return failsAfter
	case n < 29:
		return crashesBefore
	case n < 34:
		return crashesAfter
	}
	return happens
}

// read lets a dead process read nothing, and nobody where the database is away; a read
// is no step.
func read[T any](g *gate, do func() (T, error)) (none T, err error) {
	g.of.alive()
	if g.w.now.Before(g.w.away) {
		return none, errAway
	}
	return do()
}

func (g *gate) MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error) {
	return read(g, func() (movement.Movement, error) { return g.Store.MovementByKey(ctx, key) })
}

func (g *gate) MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error) {
	return read(g, func() (movement.Movement, error) { return g.Store.MovementByID(ctx, id) })
}

func (g *gate) Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error) {
	return read(g, func() (movement.Statement, error) { return g.Store.Statement(ctx, account) })
}

func (g *gate) Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	return read(g, func() ([]movement.ListedEvent, error) {
		if g.w.options.Bug == EventsByClock {
			return g.eventsByClock(ctx, owner, after)
		}
		return g.Store.Events(ctx, owner, after, age, most)
	})
}

func (g *gate) OpenLines(ctx context.Context, account movement.AccountID, after string, most int) ([]movement.StatementLine, error) {
	return read(g, func() ([]movement.StatementLine, error) { return g.Store.OpenLines(ctx, account, after, most) })
}

func (g *gate) PaidOut(ctx context.Context, m movement.Movement, most int) ([]movement.Movement, error) {
	return read(g, func() ([]movement.Movement, error) { return g.Store.PaidOut(ctx, m, most) })
}

// pair is what a call returns beside its error.
type pair[A, B any] struct {
	a A
	b B
}

func (g *gate) Reserve(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error) {
	name := g.w.books.owner(draft.Owner.MerchantID) + "/" + string(draft.Kind) + "/" + draft.CallersReference()
	got, err := write(ctx, g, "reserve "+name, func() (pair[movement.Movement, bool], error) {
		m, ours, err := g.reserve(ctx, draft)
		return pair[movement.Movement, bool]{m, ours}, err
	})
	return got.a, got.b, err
}

// reserve reserves, and keeps in mind what was.
func (g *gate) reserve(ctx context.Context, draft movement.Movement) (movement.Movement, bool, error) {
	if g.w.options.Bug == SkippedReservation && g.w.chance(20) {
		return draft, true, nil
	}
	if g.w.options.Bug == UncountedRefund && draft.Kind == manifest.Refund {
		draft.Usage = nil
	}
	m, ours, err := g.Store.Reserve(ctx, draft)
	g.w.statements = nil
	if err == nil && ours {
		g.w.books.reserved(m)
		g.w.touch()
	}
	return m, ours, err
}

func (g *gate) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	return write(ctx, g, "acknowledge "+g.w.books.name(m.ID), func() (movement.Movement, error) {
		if g.w.options.Bug == ReusedReference && m.State == movement.Submitting {
			m.State, m.Answer = movement.Acknowledged, answer
			return m, nil
		}
		return g.Store.Acknowledge(ctx, m, answer)
	})
}

func (g *gate) Apply(ctx context.Context, c movement.Change) (bool, error) {
	what := fmt.Sprintf("apply %s to %s by %s %s", c.Event, g.w.books.name(c.Movement.ID), c.Detail, c.To)
	if c.Effect == movement.KeepAnswer {
		what = "keep the answer of " + g.w.books.name(c.Movement.ID)
	}
	return write(ctx, g, what, func() (bool, error) {
		done, err := g.planted(ctx, c)
		if done && err == nil {
			g.w.touch()
			g.w.books.applied(c)
			g.w.willRead(c)
		}
		return done, err
	})
}

func (g *gate) Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	return write(ctx, g, "take the right to poll "+g.w.books.name(m.ID), func() (bool, error) {
		ours, err := g.Store.Poll(ctx, m, now, before, next)
		if g.w.options.Bug == IgnoredPollGuard && err == nil && m.State.Open() {
			return true, nil
		}
		return ours, err
	})
}

func (g *gate) Miss(ctx context.Context, m movement.Movement, next time.Time) (int, error) {
	return write(ctx, g, "miss "+g.w.books.name(m.ID), func() (int, error) {
		g.w.touch()
		return g.Store.Miss(ctx, m, next)
	})
}

// nothing is what a call returns that returns only an error.
type nothing struct{}

func (g *gate) ReleaseAmount(ctx context.Context, m movement.Movement) error {
	_, err := write(ctx, g, "release the amount of "+g.w.books.name(m.ID), func() (nothing, error) { return nothing{}, g.Store.ReleaseAmount(ctx, m) })
	return err
}

// LastEqual finds the newest equal transfer, with a bug where one is planted there.
func (g *gate) LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	last, err := g.Store.LastEqual(ctx, owner, kind, fingerprint)
	if g.w.options.Bug == RepeatedTransfer {
		last.CreatedAt = last.CreatedAt.Add(-repeatWithin)
	}
	return last, err
}

func (g *gate) AddException(ctx context.Context, x movement.Exception) (bool, error) {
	return write(ctx, g, "list "+x.Reason+" of "+g.w.books.subject(x.Subject), func() (bool, error) {
		if bug := g.w.options.Bug; bug == SwallowedException || bug == UnlistedReturn && x.Reason == movement.ReasonReturned {
			return true, nil
		}
		fresh, err := g.Store.AddException(ctx, x)
		if fresh {
			g.w.touch()
		}
		return fresh, err
	})
}

func (g *gate) CountException(ctx context.Context, x movement.Exception) (int64, error) {
	return write(ctx, g, "count "+x.Reason+" of "+x.Subject, func() (int64, error) { return g.Store.CountException(ctx, x) })
}

func (g *gate) Claim(ctx context.Context, c movement.Claim) (movement.Claim, error) {
	return write(ctx, g, "claim of "+c.Operator+" on "+g.w.books.name(c.Movement), func() (movement.Claim, error) { return g.Store.Claim(ctx, c) })
}

func (g *gate) ResolveExceptions(ctx context.Context, now time.Time, owner movement.Owner, subject string, reasons []string, operator, resolution string) error {
	_, err := write(ctx, g, "resolve exceptions of "+g.w.books.subject(subject), func() (nothing, error) {
		return nothing{}, g.Store.ResolveExceptions(ctx, now, owner, subject, reasons, operator, resolution)
	})
	return err
}

func (g *gate) ResolveException(ctx context.Context, now time.Time, x movement.Exception, operator, resolution string) error {
	_, err := write(ctx, g, "resolve "+x.Reason+" of "+g.w.books.subject(x.Subject), func() (nothing, error) {
		err := g.Store.ResolveException(ctx, now, x, operator, resolution)
		if id, named := movement.ParseID(x.Subject); err == nil && named == nil {
			g.w.books.resolved[id] = append(g.w.books.resolved[id], x)
		}
		return nothing{}, err
	})
	return err
}

// Note is written without a step: nothing depends on it.
func (g *gate) Note(ctx context.Context, now time.Time, m movement.Movement, event, detail string) error {
	_, err := read(g, func() (nothing, error) { return nothing{}, g.Store.Note(ctx, now, m, event, detail) })
	return err
}

func (g *gate) Override(ctx context.Context, m movement.Movement, o movement.Override, review movement.Exception) (movement.Override, error) {
	return write(ctx, g, "override "+g.w.books.name(m.ID), func() (movement.Override, error) {
		made, err := g.Store.Override(ctx, m, o, review)
		switch {
		case made.Made() && made.Outcome == movement.OverrideResubmit:
			g.w.books.resubmitted[m.ID] = made.MadeAt()
		case made.Made():
			g.w.books.overridden[m.ID] = true
		}
		if made.Made() && g.w.faults && g.w.chance(50) { // before it is applied
			g.w.crash(g.of)
		}
		return made, err
	})
}

func (g *gate) OverrideOf(ctx context.Context, id movement.ID, attempt int) (movement.Override, error) {
	if g.w.options.Bug == ForgottenDecision {
		return movement.Override{}, movement.ErrNotFound
	}
	return g.Store.OverrideOf(ctx, id, attempt)
}

func (g *gate) PollStatement(ctx context.Context, account movement.AccountID, now, before, until time.Time) (bool, error) {
	return write(ctx, g, "take the right to read the statement of "+g.w.books.accounts[account], func() (bool, error) {
		g.w.statements = nil
		return g.Store.PollStatement(ctx, account, now, before, until)
	})
}

func (g *gate) RestStatement(ctx context.Context, account movement.AccountID, until, next time.Time) error {
	_, err := write(ctx, g, fmt.Sprintf("have the statement of %s due in %v", g.w.books.accounts[account], next.Sub(g.w.now)), func() (nothing, error) {
		g.w.statements = nil
		return nothing{}, g.Store.RestStatement(ctx, account, until, next)
	})
	return err
}

func (g *gate) Import(ctx context.Context, now time.Time, s movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error) {
	what := fmt.Sprintf("import %d lines of %s behind %q", len(lines), g.w.books.accounts[s.Account], s.Cursor)
	return write(ctx, g, what, func() (bool, error) {
		if len(lines) > 0 {
			g.w.touch()
		}
		return g.Store.Import(ctx, now, s, lines, next, through)
	})
}

func (g *gate) Match(ctx context.Context, now time.Time, s movement.Statement, matches []movement.Match) ([]string, error) {
	return write(ctx, g, fmt.Sprintf("match %d lines of %s", len(matches), g.w.books.accounts[s.Account]), func() ([]string, error) {
		decided, err := g.Store.Match(ctx, now, s, matches)
		slices.Sort(decided)
		if len(decided) > 0 {
			g.w.touch()
		}
		return decided, err
	})
}

func (g *gate) CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) error {
	_, err := write(ctx, g, fmt.Sprintf("close %d lines of %s", len(done), g.w.books.accounts[account]), func() (nothing, error) {
		return nothing{}, g.Store.CloseLines(ctx, account, done, freeAt)
	})
	return err
}

func (g *gate) Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (bool, error) {
	return write(ctx, g, "assign "+seen.Payment+" to "+g.w.books.name(to), func() (bool, error) {
		done, err := g.Store.Assign(ctx, now, seen, to, operator, reason)
		if done {
			g.w.books.assigned[to], g.w.books.assigned[seen.Movement] = true, true
			g.w.books.logged[seen.Movement]++
		}
		return done, err
	})
}

// touch notes that something has changed.
func (w *world) touch() { w.changed = w.now }
