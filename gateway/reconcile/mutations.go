package reconcile

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// PaidOut are the transfers of a movement's account that a row of its amounts may be
// ([movement.OthersLike]): those that have succeeded by the provider's own word and were
// not taken back, the newest first, without the movement itself.
type PaidOut interface {
	PaidOut(ctx context.Context, m movement.Movement, most int) ([]movement.Movement, error)
}

// Absences proves from an account's own mutations that a movement was not made. It is
// safe for concurrent use.
type Absences struct {
	*lifecycle.Lifecycle
	provider Provider
	paidOut  PaidOut
}

// NewAbsences makes the proof of absence for movements of a lifecycle.
func NewAbsences(l *lifecycle.Lifecycle, p Provider, paidOut PaidOut) *Absences {
	return &Absences{l, p, paidOut}
}

// mostEqual bounds how many transfers are compared with rows. Where there are more,
// nothing is proven.
const mostEqual = 10_000

// Absence reads the mutations of a movement's account and says whether they prove
// that it was not made. The other transfers are read first: one that succeeds while
// the mutations are read makes a row too many, and never one too few.
func (a *Absences) Absence(ctx context.Context, op *catalog.Operation, m movement.Movement, c lifecycle.Connection) (movement.Fact, error) {
	f := movement.Fact{Source: movement.FromStatement}
	if !op.Manifest.Mutations {
		f.Detail = "the provider can't list the account's mutations"
		return f, nil
	}
	others, err := a.paidOut.PaidOut(ctx, m, mostEqual)
	switch {
	case err != nil:
		return f, err
	case len(others) == mostEqual:
		f.Detail = "there are too many equal transfers to tell rows of the account's mutations apart"
		return f, nil
	}
	read := movement.Mutations{From: m.MutationsFrom(others), Begun: a.Now()}
	row := func(line sdk.StatementLine) {
		read.Rows = append(read.Rows, movement.Mutation{Reference: line.Reference, Amount: line.Amount})
	}
	if f.Detail = a.pages(ctx, op.Provider, c, read.From, row); f.Detail != "" {
		return f, nil
	}
	text, absent := m.Absent(op.Rules, read, others)
	if f.Detail = text; absent {
		f.Says, f.From, f.Begun = movement.SaysAbsent, read.From, read.Begun
	}
	return f, nil
}
