package movement

import (
	"slices"
	"time"
)

// Exception is what needs a person. Owner, subject, reason and fact name it.
type Exception struct {
	Owner
	Subject  string    `json:"subject"` // the movement's id, or what the provider called it
	Reason   string    `json:"reason"`
	FactID   string    `json:"fact_id"` // the upstream's id of the fact, or ""
	Provider string    `json:"provider"`
	Detail   string    `json:"detail"` // for people; no secrets
	At       time.Time `json:"at"`
	// Lasting says that it goes on until somebody mends it. Said again after it was
	// resolved, it stands on the list again, numbered behind the fact.
	Lasting bool `json:"-"`
	// Times is how often it has come, of one that is counted; else 0 or 1.
	Times int64 `json:"times,omitempty"`

	ResolvedAt time.Time `json:"resolved_at,omitzero"` // zero while it is open
	ResolvedBy string    `json:"resolved_by,omitempty"`
	Resolution string    `json:"resolution,omitempty"`
}

// operatorsEnd are the reasons of exceptions that leave a movement open: while the
// provider goes on telling them, nobody but operators can end it.
var operatorsEnd = []string{ReasonUnresolved, ReasonVanished, ReasonAmount, ReasonCurrency, ReasonUnreadable, ReasonContradiction}

// OperatorsEnd tells whether an exception of the reason holds an open movement up until
// operators decide it, however young it is.
func OperatorsEnd(reason string) bool { return slices.Contains(operatorsEnd, reason) }
