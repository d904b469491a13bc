package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Kind says why a transaction was posted.
type Kind string

// The kinds. Charge and Hold begin the payment of a movement. Exactly one of Cost
// and Refund ends a charge, and one of Capture and Release ends a hold. Reversal
// gives back the price of a movement that had succeeded. Credit and Debit are
// operators'.
const (
	Charge   Kind = "charge"
	Hold     Kind = "hold"
	Cost     Kind = "cost"
	Refund   Kind = "refund"
	Capture  Kind = "capture"
	Release  Kind = "release"
	Reversal Kind = "reversal"
	Credit   Kind = "credit"
	Debit    Kind = "debit"
)

// Step is the place of a transaction in the life of its subject. Each attempt has
// each step at most once.
type Step int

// The steps.
const (
	Begins   Step = 1
	Ends     Step = 2
	Reverses Step = 3
)

// Legs are the changes of each account, in whole rupiah. Available and Held are the
// merchant's; the others are the platform's, in the same mode.
type Legs struct {
	Available   money.Amount // the merchant's, for orders and debits
	Held        money.Amount // what is set aside for movements under way
	Margin      money.Amount // fees and margin: what merchants have paid
	Cost        money.Amount // what providers took for it
	Deposit     money.Amount // what providers took out of the platform's deposit with them
	Adjustments money.Amount // what came and went outside of this service
}

// Transaction is one balanced posting. Transactions are only ever added.
type Transaction struct {
	Subject  uuid.UUID // the movement, or the adjustment
	Attempt  int       // of the movement; 0 for an adjustment
	Step     Step
	Kind     Kind
	Provider string // "" for an adjustment
	At       time.Time
	Legs
}

// Balanced reports whether the legs sum to zero, as those of every transaction do.
func (l Legs) Balanced() bool {
	sum := money.Amount(0)
	for _, leg := range []money.Amount{l.Available, l.Held, l.Margin, l.Cost, l.Deposit, l.Adjustments} {
		next, err := sum.Add(leg)
		if err != nil {
			return false
		}
		sum = next
	}
	return sum == 0
}

// ErrMalformed says that this package makes no such transaction.
var ErrMalformed = errors.New("ledger: malformed transaction")

// Check refuses transactions that no function of this package makes: an unknown
// kind, a step or legs that are not the kind's.
func (t Transaction) Check() error {
	if made, ok := t.remade(); !ok || made.Step != t.Step || made.Legs != t.Legs || !t.Balanced() {
		return fmt.Errorf("%w: %s", ErrMalformed, t.Kind)
	}
	return nil
}

// remade makes the transaction anew from its kind and the amounts in its legs. A
// negative amount counts as none.
func (t Transaction) remade() (Transaction, bool) {
	switch t.Kind {
	case Charge:
		return BeginCharge(t.Margin), t.Margin > 0
	case Hold:
		return BeginHold(t.Held), t.Held > 0
	case Cost:
		return EndCost(t.Deposit), t.Deposit >= 0
	case Capture:
		return EndCapture(t.Margin, t.Deposit), t.Margin > 0 && t.Deposit >= 0
	case Refund:
		return GiveBack(t.Available), t.Available > 0
	case Release:
		return LetGo(t.Available), t.Available > 0
	case Reversal:
		return TakeBack(t.Available, t.Legs.Cost), t.Available > 0 && t.Legs.Cost >= 0
	case Credit:
		return Adjust(t.Available), t.Available > 0
	case Debit:
		return Adjust(t.Available), t.Available < 0
	}
	return Transaction{}, false
}
