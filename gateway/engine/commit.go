package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// move is the one place where a movement's state changes. A false may also mean
// that an earlier try of ours was through without our hearing of it, so whoever
// gets one reads what stands there.
//
// An end is told to the merchant, and paid or paid back, in the same commit.
func (e *Engine) move(ctx context.Context, move store.Move) (bool, error) {
	event := uuid.New() // the same on every try
	moved, err := persist(ctx, e.patience, func(ctx context.Context) (moved bool, err error) {
		now := e.Now() // of this try, or the event would be older than its commit
		move.Posting = postingOf(move, now)
		if move.To.Final() {
			then := move.Movement
			then.State, then.UpdatedAt, then.PaidAt, then.Result = move.To, now, move.PaidAt, orEarlier(move.Result, then.Result)
			if move.Callback, err = e.tell(ctx, then, ended, event, now); err != nil {
				return false, err
			}
			move.Mail = e.receipt(ctx, then, event)
		}
		return e.Movements.Move(ctx, now, move)
	})
	e.announce(move.Callback)
	if move.Mail != nil && moved {
		e.Mailed()
	}
	return moved, err
}

func orEarlier(now, earlier json.RawMessage) json.RawMessage {
	if now == nil {
		return earlier
	}
	return now
}

// postingOf is what a move means for the ledger, nil for nothing.
func postingOf(move store.Move, now time.Time) *ledger.Transaction {
	m, well := move.Movement, move.To == movement.Succeeded
	switch {
	case m.Charge == movement.Unpaid, move.To == movement.Pending:
		return nil
	case m.Charge == movement.Charged && well:
		return posted(m, now, ledger.EndCost(move.Cost))
	case m.Charge == movement.Charged:
		return posted(m, now, ledger.GiveBack(m.Amount))
	case well:
		return posted(m, now, ledger.EndCapture(m.Amount, move.Cost))
	}
	return posted(m, now, ledger.LetGo(m.Amount))
}

func posted(m movement.Movement, now time.Time, tx ledger.Transaction) *ledger.Transaction {
	tx.Subject, tx.Attempt, tx.Provider, tx.At = uuid.UUID(m.ID), m.Attempt, m.Provider, now
	return &tx
}

// reread reads a movement as it stands now.
func (e *Engine) reread(ctx context.Context, id movement.ID) (movement.Movement, error) {
	return persist(ctx, e.patience, func(ctx context.Context) (movement.Movement, error) {
		return e.Movements.MovementByID(ctx, id)
	})
}

// persist runs a commit of what has happened already: it does not end with its
// caller, and a database that is away for a moment is waited for.
func persist[T any](ctx context.Context, patience time.Duration, commit func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = 50*time.Millisecond, time.Second
	var last error
	done, err := backoff.Retry(ctx, func() (T, error) {
		trying, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		done, err := commit(trying)
		if last = err; err != nil && !passing(err) {
			err = backoff.Permanent(err)
		}
		return done, err
	}, backoff.WithBackOff(pause))
	if err != nil && !errors.Is(err, last) {
		err = errors.Join(err, last) // patience ended; the reason is the last try's
	}
	return done, err
}

// lasting are the classes of SQLSTATE that no waiting mends: wrong data, broken
// constraints, wrong statements.
var lasting = []string{"22", "23", "42"}

// passing tells whether what failed may succeed a moment later.
func passing(err error) bool {
	type coded interface {
		error
		SQLState() string
	}
	if errors.Is(err, store.ErrNotFound) {
		return false
	}
	named, ok := errors.AsType[coded](err)
	return !ok || len(named.SQLState()) < 2 || !slices.Contains(lasting, named.SQLState()[:2])
}
