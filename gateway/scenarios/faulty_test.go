package scenarios

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// reserving is the keeper's own reservation.
type reserving func() (movement.Movement, bool, error)

// faulty is a keeper that fails as told. A commit can fail with or without
// having happened.
type faulty struct {
	keeper

	reserve   func(ctx context.Context, do reserving) (movement.Movement, bool, error)
	move      func(do func() (bool, error)) (bool, error)
	promise   func(do func() (movement.Movement, error)) (movement.Movement, error)
	judged    func()                        // sees each look at a reference
	compared  func()                        // sees each look for an equal transfer
	down      error                         // of reads, and of the right to ask
	recording error                         // of records and the operators' list
	listing   error                         // of the operators' list alone
	told      func(*movement.CallbackEvent) // sees the event of each try

	mu sync.Mutex
	at func(step string) // before and after each write, one at a time
}

func (f *faulty) around(step string, write func()) {
	f.reach("before " + step)
	write()
	f.reach("after " + step)
}

func (f *faulty) reach(step string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at != nil {
		f.at(step)
	}
}

var errAway = errors.New("the database is away")

// broken is an error that no waiting mends.
type broken struct{ error }

func (broken) SQLState() string { return "23514" }

func (b broken) Unwrap() error { return b.error }

func (f *faulty) Reserve(ctx context.Context, m movement.Movement) (movement.Movement, bool, error) {
	do := func() (got movement.Movement, ours bool, err error) {
		f.around("reserve", func() { got, ours, err = f.keeper.Reserve(ctx, m) })
		return got, ours, err
	}
	if err := ctx.Err(); err != nil {
		return movement.Movement{}, false, err
	}
	if f.reserve != nil {
		return f.reserve(ctx, do)
	}
	return do()
}

func (f *faulty) Apply(ctx context.Context, c movement.Change) (bool, error) {
	if c.Effect == movement.LateMoney || c.Effect == movement.MoneyBack || c.Effect == movement.OtherAmount || c.Effect == movement.Move {
		if f.told != nil {
			f.told(c.Callback)
		}
	}
	do := func() (done bool, err error) {
		if step := stepOf(c); step != "" {
			f.around(step, func() { done, err = f.keeper.Apply(ctx, c) })
			return done, err
		}
		return f.keeper.Apply(ctx, c)
	}
	switch {
	case c.Effect == movement.LateMoney && f.recording != nil:
		return false, f.recording
	case c.Effect != movement.Move && c.Effect != movement.Renewal:
		return do()
	case ctx.Err() != nil:
		return false, ctx.Err()
	case f.move != nil:
		return f.move(do)
	default:
		return do()
	}
}

// stepOf names the commit of a change at which a process may end, "" for none.
func stepOf(c movement.Change) string {
	switch c.Effect {
	case movement.LateMoney:
		return "late"
	case movement.MoneyBack:
		return "return"
	case movement.OtherAmount:
		return "other amount"
	case movement.Move:
		return "move to " + string(c.To)
	case movement.Nothing, movement.Supplement, movement.KeepAnswer, movement.Contradiction, movement.Renewal, movement.Errored:
	}
	return ""
}

func (f *faulty) Acknowledge(ctx context.Context, m movement.Movement, answer json.RawMessage) (movement.Movement, error) {
	do := func() (movement.Movement, error) { return f.keeper.Acknowledge(ctx, m, answer) }
	if f.promise != nil {
		return f.promise(do)
	}
	return do()
}

func (f *faulty) LastEqual(ctx context.Context, owner movement.Owner, kind manifest.Kind, fingerprint string) (movement.Movement, error) {
	m, err := f.keeper.LastEqual(ctx, owner, kind, fingerprint)
	fire(f.compared)
	return m, err
}

func (f *faulty) MovementByKey(ctx context.Context, key movement.Key) (movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return movement.Movement{}, err
	}
	m, err := f.keeper.MovementByKey(ctx, key)
	if f.judged != nil {
		f.judged()
	}
	return m, err
}

func (f *faulty) MovementByID(ctx context.Context, id movement.ID) (movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return movement.Movement{}, err
	}
	return f.keeper.MovementByID(ctx, id)
}

func (f *faulty) Events(ctx context.Context, owner movement.Owner, after uuid.UUID, age time.Duration, most int) ([]movement.ListedEvent, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return nil, err
	}
	return f.keeper.Events(ctx, owner, after, age, most)
}

func (f *faulty) Movements(ctx context.Context, l movement.Listing) ([]movement.Movement, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return nil, err
	}
	return f.keeper.Movements(ctx, l)
}

func (f *faulty) Poll(ctx context.Context, m movement.Movement, now, before, next time.Time) (bool, error) {
	if err := cmp.Or(f.down, ctx.Err()); err != nil {
		return false, err
	}
	return f.keeper.Poll(ctx, m, now, before, next)
}

func (f *faulty) AddException(ctx context.Context, a movement.Exception) (bool, error) {
	if err := cmp.Or(f.recording, f.listing); err != nil {
		return false, err
	}
	return f.keeper.AddException(ctx, a)
}

func (f *faulty) Import(ctx context.Context, now time.Time, s movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (ok bool, err error) {
	f.around("import", func() { ok, err = f.keeper.Import(ctx, now, s, lines, next, through) })
	return ok, err
}

func (f *faulty) Match(ctx context.Context, now time.Time, s movement.Statement, matches []movement.Match) (decided []string, err error) {
	f.around("match", func() { decided, err = f.keeper.Match(ctx, now, s, matches) })
	return decided, err
}

func (f *faulty) CloseLines(ctx context.Context, account movement.AccountID, done []movement.StatementLine, freeAt time.Time) (err error) {
	f.around("close", func() { err = f.keeper.CloseLines(ctx, account, done, freeAt) })
	return err
}

func (f *faulty) Assign(ctx context.Context, now time.Time, seen movement.StatementLine, to movement.ID, operator, reason string) (ok bool, err error) {
	f.around("assign", func() { ok, err = f.keeper.Assign(ctx, now, seen, to, operator, reason) })
	return ok, err
}
