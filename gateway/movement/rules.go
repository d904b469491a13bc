package movement

import (
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// State is where a movement stands, the same for every kind. What a merchant
// reads is the kind's word for it.
type State string

// The states. Succeeded, Failed and Expired are final. NotSubmitted frees the
// reference.
const (
	Submitting   State = "submitting"   // reserved; the provider may or may not have it
	Acknowledged State = "acknowledged" // a merchant has read Pending, and nobody knows yet whether the provider has it
	Pending      State = "pending"      // the provider has it
	Succeeded    State = "succeeded"
	Failed       State = "failed"
	Expired      State = "expired"
	NotSubmitted State = "not_submitted" // proven: nothing was sent, and no merchant has read Pending
)

// Final tells whether the state never changes any more.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Expired }

// Rules is what a kind decides about money: one row of the table.
type Rules struct {
	Kind        manifest.Kind
	Reserves    Reserves         // what a reservation takes besides its reference
	Words       map[State]string // what a merchant reads
	Transitions map[State][]State
	// ReferenceField is the property that names the movement in answers.
	ReferenceField string
	// Reports are the texts of a provider's result that a merchant is told: always
	// in callbacks, in status answers those that there are.
	Reports []string
	Events  Events
	// Pends says what a creation is answered whose outcome is not known in time:
	// as pending, which is a promise, or else that it timed out.
	Pends bool
	// Looks are when an open movement is looked at, after its creation, and then
	// daily; nil for the usual ones, which go by its life.
	Polls []time.Duration
	// Life is how long a movement waits for its money, where its kind says so and
	// not its provider; 0 for the provider's word. Such a movement is paid by a row
	// of the provider's books alone, and ends unpaid by them.
	Life time.Duration
	// Quiet says that a creation is answered as pending whatever the provider says
	// to it: how it ended is told by callback and status.
	Quiet bool
}

// Reserves is what a reservation takes besides its reference.
type Reserves string

// What a reservation takes.
const (
	ReserveNothing Reserves = "nothing"
	ReserveAmount  Reserves = "amount"  // a payable amount that no other open movement of the account has
	ReserveBalance Reserves = "balance" // its price, out of the merchant's balance, where it is charged or held
	ReserveLimits  Reserves = "limits"  // room below payout limits
)

// Events are the names under which a kind's merchants are told of things.
type Events struct {
	Ended    string // a final state was reached
	PaidLate string // "" where there is no such thing
	Reversed string
}

// table has one row for each kind that this gateway serves.
var table = []Rules{
	{
		Kind:     manifest.Payment,
		Reserves: ReserveNothing,
		Words: map[State]string{
			Submitting: "PENDING", Pending: "PENDING",
			Succeeded: "PAID", Failed: "FAILED", Expired: "EXPIRED",
		},
		Transitions: map[State][]State{
			Submitting:   {Pending, Succeeded, Failed, Expired, NotSubmitted},
			Pending:      {Succeeded, Failed, Expired},
			NotSubmitted: {Submitting},
		},
		ReferenceField: "external_id",
		Events: Events{
			Ended: "payments.status_update", PaidLate: "payments.paid_late", Reversed: "payments.reversed",
		},
	},
	{
		Kind:     manifest.Collection,
		Reserves: ReserveAmount,
		Words: map[State]string{
			Submitting: "PENDING", Pending: "PENDING",
			Succeeded: "PAID", Failed: "FAILED", Expired: "EXPIRED",
		},
		Transitions: map[State][]State{
			Submitting:   {Pending, Succeeded, Failed, Expired, NotSubmitted},
			Pending:      {Succeeded, Expired},
			NotSubmitted: {Submitting},
		},
		ReferenceField: "external_id",
		Events: Events{
			Ended: "wallet2.status_update", PaidLate: "wallet2.paid_late", Reversed: "wallet2.reversed",
		},
		Life: 30 * time.Minute,
	},
	{
		Kind:     manifest.Order,
		Reserves: ReserveBalance,
		Words: map[State]string{
			Submitting: "Pending", Acknowledged: "Pending", Pending: "Pending",
			Succeeded: "Success", Failed: "Failed",
		},
		Transitions: map[State][]State{
			Submitting:   {Acknowledged, Pending, Succeeded, Failed, NotSubmitted},
			Acknowledged: {Pending, Succeeded, Failed},
			Pending:      {Succeeded, Failed},
			NotSubmitted: {Submitting},
		},
		ReferenceField: "ref_id",
		Reports:        []string{"sn", "message"},
		Events:         Events{Ended: "ppob.status_update", Reversed: "ppob.reversed"},
		Pends:          true,
		Quiet:          true,
	},
	{
		Kind:     manifest.Transfer,
		Reserves: ReserveLimits,
		Words: map[State]string{
			Submitting: "Pending", Acknowledged: "Pending", Pending: "Pending",
			Succeeded: "Success", Failed: "Failed",
		},
		Transitions: map[State][]State{
			Submitting:   {Acknowledged, Pending, Succeeded, Failed, NotSubmitted},
			Acknowledged: {Pending, Succeeded, Failed},
			Pending:      {Succeeded, Failed},
			// Money that has moved against all proof takes its reference again, unless
			// somebody was faster.
			NotSubmitted: {Submitting, Pending, Succeeded},
		},
		ReferenceField: "external_id",
		Events:         Events{Ended: "transfer.status_update", Reversed: "transfer.reversed"},
		Pends:          true,
		Polls:          []time.Duration{10 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, time.Hour},
	},
}

// RulesOf returns a kind's row, and whether this gateway serves the kind.
func RulesOf(kind manifest.Kind) (Rules, bool) {
	for _, row := range table {
		if row.Kind == kind {
			return row, true
		}
	}
	return Rules{}, false
}

// Kinds are the kinds that have movements, in the table's order.
func Kinds() []manifest.Kind {
	kinds := make([]manifest.Kind, len(table))
	for i, row := range table {
		kinds[i] = row.Kind
	}
	return kinds
}

// Word is what a merchant reads for a state.
func (r Rules) Word(s State) string { return r.Words[s] }

// Effect is what a fact about a movement means for its state.
type Effect int

// The effects. Contradiction is a fact that fits nothing and goes to the
// operators' list.
const (
	Nothing Effect = iota // it already stands there
	Move
	LateMoney
	Reversal
	Contradiction
)

// Judge says what it means when the provider says that a movement that stands
// at from is at to.
func (r Rules) Judge(from, to State) Effect {
	switch {
	case from == to:
		return Nothing
	case slices.Contains(r.Transitions[from], to):
		return Move
	case from.Final() && from != Succeeded && to == Succeeded && r.Events.PaidLate != "":
		return LateMoney
	case from == Succeeded && to == Failed:
		return Reversal
	case from.Final() && (to == Pending || to == Expired || to == Failed) && r.Words[to] != "":
		// News that is older than what we know: notifications come in any order.
		return Nothing
	}
	return Contradiction
}
