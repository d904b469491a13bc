package movement

import (
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Payment is money that a provider's books say has arrived.
type Arrival struct {
	Amount money.Amount
	At     time.Time
}

// Candidate is a collection of the account that a payment arrived on.
type Candidate struct {
	ID        ID
	Amount    money.Amount // payable
	State     State
	CreatedAt time.Time
	ExpiresAt time.Time
	Taken     bool // another payment pays it
}

// Match is what a payment is found to be.
type Relation int

// The matches. Paying belongs to one collection, in its life or late, after it
// has expired. Waiting may be for a collection of which nobody knows yet whether its
// payer could pay at all, or late money of one whose life is over and that is not
// known to have been unpaid in it. All others are for operators.
const (
	Unmatched Relation = iota
	Paying
	Waiting
	Ambiguous
	Again // its collection is paid already
)

// Skew is how much earlier than its collection was made a payment may seem to
// be: clocks differ, and books tell whole seconds.
const Skew = 2 * time.Minute

// MatchPayment finds the collection that a payment is for: the one that asked for
// exactly this amount, in whose life or the time after it that its amount stays
// its own the payment lies. Where there are two, it is neither.
func FindMatch(p Arrival, candidates []Candidate, coolDown time.Duration) (Relation, ID) {
	var found *Candidate
	for i := range candidates {
		c := &candidates[i]
		if c.Amount != p.Amount || p.At.Before(c.CreatedAt.Add(-Skew)) || p.At.After(c.ExpiresAt.Add(coolDown)) {
			continue
		}
		if found != nil {
			return Ambiguous, ID{}
		}
		found = c
	}
	switch {
	case found == nil:
		return Unmatched, ID{}
	case found.Taken || found.State == Succeeded:
		return Again, found.ID
	case found.State == Submitting, p.At.After(found.ExpiresAt) && found.State != Expired:
		return Waiting, found.ID
	}
	return Paying, found.ID
}
