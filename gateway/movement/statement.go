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
	PolledAt   time.Time // when somebody last began to read it; zero for never
	DueAt      time.Time // when it is read next
}

// Bucket is the bucket of the queue of statements that an account's is in.
func (a AccountID) Bucket() int { return int(a[0]) % Buckets }

const (
	// ReadEvery is how long an account's statement is left alone at least, over all
	// replicas, and how soon it is read for a new sale.
	ReadEvery = 5 * time.Second
	// readLately is how long a sale that has ended is read the statement for when its
	// merchant asks.
	readLately = 24 * time.Hour

	readOpen    = 5 * time.Minute // while a sale is open, at least
	readOverdue = time.Hour       // while one is whose life is over
	readIdle    = 6 * time.Hour   // always
	readBeyond  = 2 * time.Second // after the moment from which something can be told
)

// Unpaid tells whether the statement ends a collection that no line of it has paid.
func (s Statement) Unpaid(c Candidate, now time.Time) bool {
	return c.State == Pending && unpaid(c.ExpiresAt, now, s.Through)
}

// NextReading is when an account's statement is read next, given that it was read now,
// for the open sales that it may end: each is left alone for about as long as it has
// been waited for, and not beyond the moment from which the statement, which is as late
// then as it is now, can say that its life was unpaid. Where none is open, lines still
// come late: it is left alone for twice as long as before, from five minutes on.
func (s Statement) NextReading(now time.Time, open []Candidate) time.Time {
	if len(open) == 0 {
		return now.Add(min(max(2*min(now.Sub(s.PolledAt), readIdle), readOpen), readIdle))
	}
	late := max(now.Sub(s.Through), 0)
	next := now.Add(readIdle)
	for _, c := range open {
		since, most := c.CreatedAt, readOpen
		if now.After(c.ExpiresAt) {
			since, most = c.ExpiresAt, readOverdue
		}
		next = earlier(next, now.Add(min(max(now.Sub(since), ReadEvery), most)))
		if told := c.ExpiresAt.Add(late + readBeyond); told.After(now) && late < readLately {
			next = earlier(next, later(told, now.Add(ReadEvery)))
		}
	}
	return next
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
	Failed     bool      // it says that it was not paid, which counts only where it was before
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

// LineRange names the statement lines of a merchant that wait for an operator: those before
// Until (all where it is zero), and of those at that very time the ones after a line, where
// its account and payment are given.
type LineRange struct {
	MerchantID string
	Until      time.Time
	Account    AccountID
	Payment    string
	Most       int
}

// ListedLine is a statement line that waits for an operator, and whose it is.
type ListedLine struct {
	StatementLine
	Owner    Owner
	Provider string
}
