package movement

import (
	"slices"
	"time"
)

// Exception is what needs a person. Owner, subject, reason and fact name it.
type Exception struct {
	Owner    Owner
	Subject  string // the movement's id, or what the provider called it
	Reason   string
	FactID   string // the upstream's id of the fact, or ""
	Provider string
	Detail   string // for people; no secrets
	At       time.Time
	// Lasting says that it goes on until somebody mends it. Said again after it was
	// resolved, it stands on the list again, numbered behind the fact.
	Lasting bool
	// Times is how often it has come, of one that is counted; else 0 or 1.
	Times int64

	ResolvedAt time.Time // zero while it is open
	ResolvedBy string
	Resolution string
}

// operatorsEnd are the reasons of exceptions that leave a movement open: while the
// provider goes on telling them, nobody but operators can end it.
var operatorsEnd = []string{ReasonUnresolved, ReasonVanished, ReasonAmount, ReasonCurrency, ReasonUnreadable, ReasonContradiction}

// OperatorsEnd tells whether an exception of the reason holds an open movement up until
// operators decide it, however young it is.
func OperatorsEnd(reason string) bool { return slices.Contains(operatorsEnd, reason) }
