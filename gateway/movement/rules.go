package movement

import (
	"slices"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// State is where a movement stands, the same for every kind. What a merchant
// reads is the kind's word for it.
type State string

// The states. Succeeded, Failed and Expired are final; NotSubmitted frees the
// reference.
const (
	Submitting   State = "submitting"    // reserved; the provider may or may not have it
	Acknowledged State = "acknowledged"  // as submitting, and a merchant has read that it is pending
	Pending      State = "pending"       // the provider has it
	Succeeded    State = "succeeded"     //
	Failed       State = "failed"        //
	Expired      State = "expired"       //
	NotSubmitted State = "not_submitted" // proven: nothing was sent, and no merchant has read that it is pending
)

// Returned is what lists go by of a success of which nothing is left. It is no state that a
// movement is in, so it is none of the constants that a switch must name.
var Returned State = "returned"

// Of is the state of the movements that a list by this one shows.
func (s State) Of() State {
	if s == Returned {
		return Succeeded
	}
	return s
}

// End is what lists go by of a state that ends a movement, "" for one that does not.
func (s State) End() string {
	if s.Ends() || s == Returned {
		return string(s)
	}
	return ""
}

// Final tells whether the state never changes any more.
func (s State) Final() bool { return s == Succeeded || s == Failed || s == Expired }

// Ends tells whether a movement that gets the state is over: for good, or until its
// reference is used again.
func (s State) Ends() bool { return s.Final() || s == NotSubmitted }

// Unknown tells whether nobody knows yet if the provider has the movement.
func (s State) Unknown() bool { return slices.Contains(unknown, s) }

// Open tells whether the provider's word on the end is still to come.
func (s State) Open() bool { return slices.Contains(open, s) }

// Rules is what a kind, and the manifest of its operation, decide about money.
// Every difference between kinds that the lifecycle knows is a value here.
type Rules struct {
	Kind  manifest.Kind
	Words map[State]string // what a merchant reads
	// From says of each state which states a movement may leave for it.
	From map[State][]State
	// ReferenceField is the property that names the movement in answers.
	ReferenceField string
	// Scope is what a merchant's key must have to create one or end one.
	Scope string
	// NamesMerchant says that the contract requires merchant_id in a creation.
	NamesMerchant bool
	// Reports are the texts of a provider's result that a merchant reads: always in
	// callbacks, in status answers those that there are.
	Reports []string
	Events  Events

	Reserves Reserves
	Answers  Answers
	// AmountIsCost says that the amount of a status update is what the movement costs at
	// the provider. Otherwise it is the amount that was asked for.
	AmountIsCost bool
	// Receipts says that a payer who left an address is mailed a receipt.
	Receipts bool
	// Flow says whether money comes in or goes out: what a second success means, and
	// what is kept of a provider's words.
	Flow Flow
	// Waits says that a pending movement may wait for its payer for as long as the
	// provider lets it: it is an exception a day after its life, any other after a day.
	Waits   bool
	EndedBy Ender
	// LostIsAsked says that after a restore of the database a movement is looked for
	// before it is made: two of one name could both be paid, and a lookup tells of one.
	LostIsAsked bool
	// Routed says that several providers may serve one path of a contract, and that the
	// policy orders them. What else moves money is bound to the account that holds it.
	Routed bool
	// Follows says that a movement is about another one, and goes where that one went.
	Follows bool
	// NotFound is what makes a provider's "not found" proof that nothing was sent.
	NotFound Proof
	// Life is how long a movement waits for its money where the kind says so and not
	// the provider; 0 for the provider's word.
	Life  time.Duration
	Polls Polls

	// Of the manifest: how the provider is asked, and where a lookup is the same
	// request again, until when it may be sent.
	Pace      Pace
	Resubmits bool
	// Signed says that a notification proves what it says. Any other is a reason to look.
	Signed bool
	// ResubmitWithin is how long after its creation a movement may be resubmitted, and
	// BuysWithin how long after send_by one that no provider has confirmed: its
	// resubmission may be what buys it.
	ResubmitWithin, BuysWithin time.Duration
	// Quarantine is how long after its life the reserved amount of a movement is
	// nobody else's: as long as lines of its statement may be late, and longer.
	Quarantine time.Duration
	// Timeout is how long a call of the operation may take.
	Timeout time.Duration
}

// Reserves is what a reservation takes besides the reference.
type Reserves int

// What reservations take.
const (
	ReserveNothing Reserves = iota
	ReserveAmount           // a payable amount that no other open collection of the account has
	ReserveBalance          // the price, from the merchant's balance
	ReserveLimits           // usage of payout limits
)

// Answers is what a creation is answered at once.
type Answers int

// The answers.
const (
	AnswerOffer   Answers = iota // what there is to pay, as the provider gives it, or its refusal; else it timed out
	AnswerPending                // always that it is pending; the end comes by callback and status
	AnswerPresent                // how it stands: its success, its refusal, or that it is pending
)

// Flow is where money goes.
type Flow int

// The flows.
const (
	MoneyIn  Flow = iota // from a payer to a merchant: another success is another payment
	MoneyOut             // from a merchant: another success is the same again, or must not be
)

// Ender is who says how a movement ends.
type Ender int

// The enders.
const (
	EndedByProvider  Ender = iota // calls, lookups and notifications
	EndedByStatement              // the lines of the account's statement alone
)

// Proof is what makes "not found" proof.
type Proof struct {
	Times int           // lookups in a row that must say so
	Apart time.Duration // at least
	// Mutations says that it must also be absent from the account's own mutations:
	// money that has gone out can't be called back. Where the provider can't list them
	// nothing proves it, and operators decide.
	Mutations bool
}

// Events are the names under which a kind's merchants read of things.
type Events struct {
	Ended    string // a final state was reached
	PaidLate string // "" where there is no such thing
	Returned string // money of a success went back, or came again
	// AmountDiffers is where another amount than the one asked for can arrive; "" where
	// what differs pays nothing.
	AmountDiffers string
}

var (
	twice          = Proof{Times: 2, Apart: 10 * time.Second}
	twiceAndAbsent = Proof{Times: 2, Apart: 10 * time.Second, Mutations: true}

	toPay     = map[State]string{Submitting: "PENDING", Acknowledged: "PENDING", Pending: "PENDING", Succeeded: "PAID", Failed: "FAILED", Expired: "EXPIRED"}
	toReturn  = map[State]string{Submitting: "PENDING", Acknowledged: "PENDING", Pending: "PENDING", Succeeded: "SUCCEEDED", Failed: "FAILED"}
	toReceive = map[State]string{Submitting: "Pending", Acknowledged: "Pending", Pending: "Pending", Succeeded: "Success", Failed: "Failed"}

	unknown = []State{Submitting, Acknowledged}
	open    = []State{Submitting, Acknowledged, Pending}
)

// table has one row for each kind that this gateway serves.
var table = []Rules{
	{
		Kind: manifest.Payment, Words: toPay, ReferenceField: "external_id", Scope: "collect", NamesMerchant: true,
		From: map[State][]State{
			Submitting: {NotSubmitted}, Acknowledged: {Submitting}, Pending: unknown,
			Succeeded: open, Failed: open, Expired: open, NotSubmitted: {Submitting},
		},
		Events: Events{Ended: "payments.status_update", PaidLate: "payments.paid_late", Returned: "payments.returned", AmountDiffers: "payments.amount_differs"},
		Waits:  true, LostIsAsked: true, Routed: true,
		Receipts: true, NotFound: twice,
		Polls: Polls{Pending: pollPending, Expired: pollExpired},
	},
	{
		Kind: manifest.Collection, Words: toPay, ReferenceField: "external_id", Scope: "collect",
		From: map[State][]State{
			Submitting: {NotSubmitted}, Acknowledged: {Submitting}, Pending: unknown,
			Succeeded: open, Failed: unknown, Expired: {Pending}, NotSubmitted: {Submitting},
		},
		Events:   Events{Ended: "wallet2.status_update", PaidLate: "wallet2.paid_late", Returned: "wallet2.returned"},
		Reserves: ReserveAmount, Receipts: true, EndedBy: EndedByStatement, NotFound: twice,
		Life: 30 * time.Minute,
	},
	{
		Kind: manifest.Order, Words: toReceive, ReferenceField: "ref_id", Scope: "order",
		From: map[State][]State{
			Submitting: {NotSubmitted}, Acknowledged: {Submitting}, Pending: unknown,
			Succeeded: open, Failed: open, NotSubmitted: {Submitting},
		},
		Reports:  []string{"sn", "message"},
		Events:   Events{Ended: "ppob.status_update", Returned: "ppob.returned"},
		Reserves: ReserveBalance, Answers: AnswerPending, AmountIsCost: true, Flow: MoneyOut, NotFound: twice,
		Polls: Polls{Pending: pollPending},
	},
	{
		Kind: manifest.Refund, Words: toReturn, ReferenceField: "refund_id", Scope: "refund",
		// As of a transfer: the money may have moved against all proof.
		From: map[State][]State{
			Submitting: {NotSubmitted}, Acknowledged: {Submitting}, Pending: {Submitting, Acknowledged, NotSubmitted},
			Succeeded: {Submitting, Acknowledged, Pending, NotSubmitted}, Failed: open, NotSubmitted: {Submitting},
		},
		Events:   Events{Ended: "refund.status_update", Returned: "refund.returned"},
		Reserves: ReserveLimits, Answers: AnswerPresent, Flow: MoneyOut, Follows: true, NotFound: twice,
		Polls: Polls{Open: pollOut},
	},
	{
		Kind: manifest.Transfer, Words: toReceive, ReferenceField: "external_id", Scope: "transfer",
		// Money that has moved against all proof takes its reference again, unless
		// somebody was faster.
		From: map[State][]State{
			Submitting: {NotSubmitted}, Acknowledged: {Submitting}, Pending: {Submitting, Acknowledged, NotSubmitted},
			Succeeded: {Submitting, Acknowledged, Pending, NotSubmitted}, Failed: open, NotSubmitted: {Submitting},
		},
		Events:   Events{Ended: "transfer.status_update", Returned: "transfer.returned"},
		Reserves: ReserveLimits, Answers: AnswerPresent, Flow: MoneyOut, NotFound: twiceAndAbsent,
		Polls: Polls{Open: pollOut},
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

// Kinds are those that have movements.
func Kinds() []manifest.Kind {
	kinds := make([]manifest.Kind, len(table))
	for i, row := range table {
		kinds[i] = row.Kind
	}
	return kinds
}

// Ends is the state that operators' override puts a movement in: what failed has
// expired where its kind has no failure of what the provider has made.
func (r Rules) Ends(from State, outcome OverrideOutcome) State {
	switch {
	case outcome == OverrideSucceeded:
		return Succeeded
	case slices.Contains(r.From[Failed], from):
		return Failed
	}
	return Expired
}

// ReadsStatement tells whether the statement is read for a movement: one that its
// payer can pay, or has or could have a day ago. Lines that come later than that are
// found by whoever reads the account's statement.
func (r Rules) ReadsStatement(m Movement, now time.Time) bool {
	lately := (m.State == Expired || m.State == Succeeded) && now.Sub(m.UpdatedAt) < readLately
	return r.EndedBy == EndedByStatement && (m.State == Pending || lately)
}

// Listed are the states that a merchant's list of movements shows, of a word or ("") of
// any. What is submitting may still come to nothing, and nobody was told of it.
func (r Rules) Listed(word string) []State {
	var states []State
	for _, s := range []State{Acknowledged, Pending, Succeeded, Failed, Expired, Returned} {
		of := r.Words[s]
		if s == Returned {
			of = r.Words[Failed]
		}
		if of != "" && (word == "" || of == word) {
			states = append(states, s)
		}
	}
	return states
}

// Statuses are the words that merchants read of what they list.
func (r Rules) Statuses() []string {
	var words []string
	for _, s := range r.Listed("") {
		if word := r.Words[s]; word != "" && !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// Word is what a merchant reads for a state.
func (r Rules) Word(s State) string { return r.Words[s] }

// Status is what a merchant reads of a movement: the word for its state, and of a
// success of which nothing is left the word for failure, so that a program that knows
// the four words alone ships nothing.
func (r Rules) Status(m Movement) string {
	if m.Gone() {
		return r.Words[Failed]
	}
	return r.Words[m.State]
}

// ErrorEnds tells whether an error of the provider's own, which ends a call, makes "not
// found" proof sooner. It does not where lookups send the same request again, nor where
// the account's mutations must be read, too: those are complete after settles_within.
func (r Rules) ErrorEnds() bool { return !r.Resubmits && !r.NotFound.Mutations }

// judge says what it means when somebody who may say so says that a movement that
// stands at from is at to.
func (r Rules) judge(from, to State) Effect {
	switch {
	case from == to:
		return Nothing
	case slices.Contains(r.From[to], from):
		return Move
	case from.Final() && from != Succeeded && to == Succeeded && r.Events.PaidLate != "":
		return LateMoney
	case from == Succeeded && to == Failed:
		return MoneyBack
	case from.Final() && (to == Pending || to == Expired || to == Failed) && r.Words[to] != "":
		// News that is older than what we know: notifications come in any order.
		return Nothing
	}
	return Contradiction
}
