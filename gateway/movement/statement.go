package movement

import (
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Statement is how far a provider's statement of an account was read.
type Statement struct {
	Account    AccountID
	MerchantID string
	Mode       string
	Provider   string
	Cursor     string
	Through    time.Time // zero where nothing is known
}

// ImportedLine is what one page of a statement says of a payment.
type ImportedLine struct {
	Payment    string // the provider's name of it
	ID         string // of the row that pays, or else of the one that takes back
	Amount     money.Amount
	Currency   string
	At         time.Time
	Paid       bool
	ReversedAt time.Time // zero where it was not taken back
	Differs    bool      // its rows do not agree
	Data       string
}

// LineState is where a statement line stands.
type LineState string

// The states. A new payment was judged by nobody, or waits for its collection's
// end; a matched one belongs to a collection that may not know yet. The last three
// are for operators.
const (
	LineNew       LineState = "new"
	LineMatched   LineState = "matched"
	LinePaid      LineState = "paid"
	LineReversed  LineState = "reversed"
	LineUnmatched LineState = "unmatched"
	LineAmbiguous LineState = "ambiguous"
	LineAgain     LineState = "again"
)

// StatementLine is a payment that an account's statement tells of.
type StatementLine struct {
	ImportedLine
	Account  AccountID
	State    LineState
	Movement ID     // that it pays; zero for none
	Operator string // who gave it to its movement, or ""
	Reason   string
}

// Match is what a new statement line is found to be.
type Match struct {
	Payment  string
	State    LineState
	Movement ID     // that it pays, where it is matched
	Reason   string // for which it stands on the operators' list, "" where it does not
	Detail   string // for people
}

// ListedLine is a statement line that waits for an operator, and whose it is.
type ListedLine struct {
	StatementLine
	Owner    Owner
	Provider string
}
