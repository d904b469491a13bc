package engine

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// match finds for each payment of an account the collection that it is for, and
// settles it. What can't be settled holds up no other.
func (e *Engine) match(ctx context.Context, op *catalog.Operation, seen *sighting) error {
	seen.waiting = false
	for after := ""; ; {
		page, err := e.Settlements.OpenLines(ctx, seen.Account, after, pageOfBooks)
		if err != nil || len(page) == 0 {
			return err
		}
		matched, waiting, err := e.judge(ctx, op, seen.Statement, page)
		if err != nil {
			return err
		}
		seen.waiting = seen.waiting || waiting
		if err := e.settleMatched(ctx, seen, matched); err != nil {
			return err
		}
		if after = page[len(page)-1].Payment; len(page) < pageOfBooks {
			return nil
		}
	}
}

// judge finds out which collections the new payments of a page are for. It returns
// all of the page that belong to one, whoever has found that out.
func (e *Engine) judge(
	ctx context.Context, op *catalog.Operation, book movement.Statement, page []movement.StatementLine,
) (matched []movement.StatementLine, waiting bool, err error) {
	fresh := make(map[string]movement.StatementLine, len(page))
	var inTime []movement.StatementLine
	for _, s := range page {
		if s.State == movement.LineMatched {
			matched = append(matched, s)
			continue
		}
		fresh[s.Payment], inTime = s, append(inTime, s)
	}
	if len(inTime) == 0 {
		return matched, false, nil
	}
	slices.SortStableFunc(inTime, func(a, b movement.StatementLine) int { return a.At.Compare(b.At) })
	candidates, err := e.candidates(ctx, op, book, inTime)
	if err != nil {
		return nil, false, err
	}
	verdicts := make([]movement.Match, 0, len(inTime))
	for _, s := range inTime {
		verdict, decided := verdictOn(s, candidates[s.Amount], coolDown(op))
		if waiting = waiting || !decided; decided {
			verdicts = append(verdicts, verdict)
		}
	}
	decided, err := persist(ctx, e.patience, func(ctx context.Context) ([]string, error) {
		return e.Settlements.Match(ctx, e.Now(), book, verdicts)
	})
	if err != nil {
		return nil, false, err
	}
	ours, theirs := asJudged(fresh, verdicts, decided)
	if matched = append(matched, ours...); len(theirs) == 0 {
		return matched, waiting, nil
	}
	others, err := e.Settlements.LinesNamed(ctx, book.Account, theirs)
	others = slices.DeleteFunc(others, func(s movement.StatementLine) bool { return s.State != movement.LineMatched })
	return append(matched, others...), waiting, err
}

// asJudged are the payments that our verdicts gave to collections, and the names of
// those on which somebody else was faster.
func asJudged(fresh map[string]movement.StatementLine, verdicts []movement.Match, decided []string) (ours []movement.StatementLine, theirs []string) {
	heard := make(map[string]bool, len(decided))
	for _, payment := range decided {
		heard[payment] = true
	}
	for _, v := range verdicts {
		switch s := fresh[v.Payment]; {
		case !heard[v.Payment]:
			theirs = append(theirs, v.Payment)
		case v.State == movement.LineMatched:
			s.State, s.Movement = v.State, v.Movement
			ours = append(ours, s)
		}
	}
	return ours, theirs
}

// settleMatched tells collections of their payments.
func (e *Engine) settleMatched(ctx context.Context, seen *sighting, matched []movement.StatementLine) error {
	done, failed := e.payAll(ctx, matched)
	for _, s := range done {
		delete(seen.failed, s.Movement)
	}
	for id, err := range failed {
		seen.failed[id] = err
		e.Log.ErrorContext(ctx, "a collection can't be told that it is paid", "movement", id.String(), "error", err)
	}
	return e.Settlements.CloseLines(ctx, seen.Account, done)
}

// paidAtOnce is how many collections are told at once that they are paid: their
// commits are shared.
const paidAtOnce = 16

// payAll tells collections of their payments, and returns the payments that are
// settled, and the collections that could not be told. A panic is raised here.
func (e *Engine) payAll(ctx context.Context, matched []movement.StatementLine) (done []movement.StatementLine, failed map[movement.ID]error) {
	failed = map[movement.ID]error{}
	var mu sync.Mutex
	var thrown any
	var group errgroup.Group
	group.SetLimit(paidAtOnce)
	for _, s := range matched {
		group.Go(func() error {
			defer func() {
				if cause := recover(); cause != nil {
					mu.Lock()
					defer mu.Unlock()
					thrown = cause
				}
			}()
			err := e.pay(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed[s.Movement] = err
				return nil
			}
			done = append(done, s)
			return nil
		})
	}
	_ = group.Wait() // the functions keep their errors themselves
	if thrown != nil {
		panic(thrown)
	}
	return done, failed
}
