package movement

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// OverrideOutcome is what operators say became of a movement.
type OverrideOutcome string

// The outcomes. Resubmit ends nothing: the same request is sent again, for as long as
// it may buy, counted from the decision.
const (
	OverrideSucceeded OverrideOutcome = "success"
	OverrideFailed    OverrideOutcome = "failed"
	OverrideResubmit  OverrideOutcome = "resubmit"
)

// OverrideOutcomes are all that operators can say.
var OverrideOutcomes = []OverrideOutcome{OverrideSucceeded, OverrideFailed, OverrideResubmit}

// Override is operators' decision on an attempt of a movement whose outcome nobody
// knows: proposed by one and confirmed by another, or one's alone.
type Override struct {
	MovementID ID              `json:"-"`
	Attempt    int             `json:"attempt"`
	Operator   string          `json:"operator"`
	Outcome    OverrideOutcome `json:"as"`
	Reason     string          `json:"reason"`
	At         time.Time       `json:"at"`
	Alone      bool            `json:"alone,omitempty"`

	ConfirmedBy     string    `json:"confirmed_by,omitempty"` // "" until another operator has said the same
	ConfirmedReason string    `json:"confirmed_reason,omitempty"`
	ConfirmedAt     time.Time `json:"confirmed_at,omitzero"`

	// Supersedes says of what an operator says now that a resubmission decided before
	// this moment is over, and gives way. It is not kept.
	Supersedes time.Time `json:"-"`

	// AloneUpTo is how much an operator may claim alone. It is not kept.
	AloneUpTo money.Amount `json:"-"`
}

// Check refuses what nobody could be asked about later.
func (d Override) Check() error {
	if d.Operator == "" || d.Reason == "" || d.At.IsZero() {
		return fmt.Errorf("%w: an override needs an operator, a reason and a time", ErrInvalid)
	}
	return nil
}

// MadeAt is when it was decided.
func (d Override) MadeAt() time.Time {
	if d.Alone {
		return d.At
	}
	return d.ConfirmedAt
}

// appliedWithin is how long whoever has taken in a decision may take to apply it.
const appliedWithin = 10 * time.Second

// AppliedBy is when a decision that is made has been applied by whoever took it in, unless
// that process has died: a poll applies it then.
func (d Override) AppliedBy() time.Time { return d.MadeAt().Add(appliedWithin) }

// Made tells whether it may be applied: it waits for nobody.
func (d Override) Made() bool { return d.Alone || d.ConfirmedBy != "" }

// Replaces tells whether a proposal gives way to what an operator says now: one's
// own to anything else, another's to a different outcome that is decided alone, and a
// resubmission that is over to everything.
func (d Override) Replaces(before Override) bool {
	switch {
	case before.Made():
		return before.Outcome == OverrideResubmit && before.MadeAt().Before(d.Supersedes)
	case before.Operator == d.Operator:
		return before.Outcome != d.Outcome || d.Alone
	}
	return before.Outcome != d.Outcome && d.Alone
}

// Operators are those who made an override.
func (d Override) Operators() string { return strings.TrimSuffix(d.Operator+", "+d.ConfirmedBy, ", ") }

// OverrideFact stands for the upstream's fact in a movement that operators have ended.
const OverrideFact = "override"

// PaidByOverride tells whether operators have said that the movement is paid, and not
// by which payment.
func (m *Movement) PaidByOverride() bool { return m.State == Succeeded && m.FactID == OverrideFact }
