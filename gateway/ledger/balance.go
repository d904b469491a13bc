package ledger

import (
	"errors"
	"fmt"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// ErrBelowZero says that a transaction would take a balance below zero.
var ErrBelowZero = errors.New("ledger: the balance is too small")

// Balance is what a merchant has in one mode.
type Balance struct {
	Available money.Amount // for orders and debits, without what is held
	Held      money.Amount // what is set aside for movements under way
}

// Apply returns the balance after a transaction's legs: ErrBelowZero if either
// account would fall below zero, and money.ErrOverflow if a sum does not fit. It
// ignores the platform's legs.
func (b Balance) Apply(legs Legs) (Balance, error) {
	available, err := b.Available.Add(legs.Available)
	if err != nil {
		return b, fmt.Errorf("ledger: available: %w", err)
	}
	held, err := b.Held.Add(legs.Held)
	if err != nil {
		return b, fmt.Errorf("ledger: held: %w", err)
	}
	if available < 0 || held < 0 {
		return b, ErrBelowZero
	}
	return Balance{Available: available, Held: held}, nil
}
