package movement

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// ApprovalAbove is the sum above which operators' claims on money need a second operator,
// unless the configuration says another.
const ApprovalAbove money.Amount = 100_000_000

// Claim is an operator's word on money that is checked by nothing else: a credit or debit,
// an override that one operator decides, a statement line that is given to a collection.
// What one operator claims of a merchant alone in 24 hours is summed over all kinds, and
// what would pass AloneUpTo waits for another operator.
type Claim struct {
	Owner    Owner
	Subject  string // names it: what the same operator says again is the same claim
	Movement ID
	Payment  string // of an assignment; of a refund its own reference; else ""
	Operator string
	Amount   money.Amount
	Reason   string
	At       time.Time
	Alone    bool

	ConfirmedBy string // "" until another operator has said the same
	ConfirmedAt time.Time

	AloneUpTo money.Amount // not kept; ApprovalAbove when zero
}

// Made tells whether it may be acted upon: it waits for nobody.
func (c Claim) Made() bool { return c.Alone || c.ConfirmedBy != "" }

// Fits tells whether an operator may claim it alone, beside what else was claimed so.
func (c Claim) Fits(alone money.Amount) bool {
	return alone+c.Amount <= cmp.Or(c.AloneUpTo, ApprovalAbove)
}

// Check refuses what nobody could be asked about later.
func (c Claim) Check() error {
	if c.Operator == "" || c.Reason == "" || c.At.IsZero() || c.Subject == "" || c.Amount < 0 {
		return fmt.Errorf("%w: a claim needs an operator, a reason, a time, a subject and an amount", ErrInvalid)
	}
	return nil
}

// Assigning is the claim of an operator who gives a payment to a collection: as much as
// has arrived, or as the merchant is told, whichever is more.
func Assigning(line StatementLine, m Movement, operator, reason string, at time.Time, aloneUpTo money.Amount) Claim {
	return Claim{
		Owner: m.Owner, Subject: "payment " + line.Payment + " to " + m.ID.String(), Movement: m.ID, Payment: line.Payment,
		Operator: operator, Amount: max(line.Amount, m.Amount), Reason: reason, At: at, AloneUpTo: aloneUpTo,
	}
}

// refundClaim begins the subject of a claim that is a refund.
const refundClaim = "refund "

// Refunding is the claim of an operator who gives a payment back.
func Refunding(m Movement, refund string, amount money.Amount, operator, reason string, at time.Time, aloneUpTo money.Amount) Claim {
	return Claim{
		Owner: m.Owner, Subject: refundClaim + refund + " of " + m.ID.String(), Movement: m.ID, Payment: refund,
		Operator: operator, Amount: amount, Reason: reason, At: at, AloneUpTo: aloneUpTo,
	}
}

// Refund is the reference of the refund that is claimed, "" where it is none.
func (c Claim) Refund() string {
	if strings.HasPrefix(c.Subject, refundClaim) {
		return c.Payment
	}
	return ""
}

// Claim is the claim of an override that one operator decides: all of the movement, in
// whichever direction, because its merchant ships, gets its money back or sends it again.
func (d Override) Claim(m Movement) Claim {
	return Claim{
		Owner: m.Owner, Subject: fmt.Sprintf("%s, attempt %d, is %s at %s", m.ID, m.Attempt, d.Outcome, d.At.UTC().Format(time.RFC3339Nano)), Movement: m.ID,
		Operator: d.Operator, Amount: m.Amount, Reason: d.Reason, At: d.At, Alone: d.Alone, AloneUpTo: d.AloneUpTo,
	}
}
