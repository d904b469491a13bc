package movement

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Source is where a fact comes from.
type Source string

// The sources.
const (
	FromCall         Source = "call"         // the answer of the call that submitted the movement
	FromLookup       Source = "lookup"       // a poll
	FromNotification Source = "notification" // the provider, unasked
	FromStatement    Source = "statement"    // the account's statement
	FromCancel       Source = "cancel"       // the merchant's cancel
	FromOperators    Source = "operators"    // an override
	FromClock        Source = "clock"        // time that has passed
)

// Says is what a fact says of a movement.
type Says int

// What facts say. Accepted, Refused, NotSent and Errored are a call's words; NotFound a
// lookup's; Absent, ReadThrough and Differs a statement's.
const (
	SaysNothing     Says = iota // nobody could tell
	SaysAccepted                // the provider has made it, with what there is to pay
	SaysRefused                 // the provider refused: nothing was made
	SaysNotSent                 // proof: the provider did not get it
	SaysNotFound                // the provider has nothing of it
	SaysPending                 // the provider has it, and its end is open
	SaysSucceeded               //
	SaysFailed                  //
	SaysExpired                 //
	SaysReadThrough             // the statement has been read through a moment
	SaysDiffers                 // the statement tells its payment once more, and otherwise
	SaysCancelled               // the provider has ended it, as its merchant asked
	SaysOverridden              // operators have decided it
	SaysOverdue                 // it is still open
	SaysAbsent                  // the account's mutations, read completely, don't have it
	SaysErrored                 // the provider ended the call with an error of its own, and nobody knows what it has done
)

// Fact is what somebody says of a movement, checked: texts fit our records, the
// data is what the operation's result schema accepts, times can be true. Who
// renders, fetches or validates has done so before.
type Fact struct {
	Source Source
	Says   Says
	Now    time.Time // by the process's clock
	By     string    // who says it, for the history; "" for the source

	Reference         string // the upstream reference that it is about
	ProviderReference string // "" where the provider told none that can be kept
	EventID           string // the upstream's id of the fact, "" for none
	Amount            money.Amount
	Currency          string    // "" is rupiah
	At                time.Time // when it happened, zero where nobody tells
	ExpiresAt         time.Time // zero where the provider told none
	Through           time.Time // up to when a statement was read completely
	From              time.Time // of mutations that were read: from when on

	Data       json.RawMessage // nil where there is none, or it does not fit
	Offers     bool            // the data has what there is to pay, in the form asked for
	Unreadable string          // why the data of a success can't be used, "" where it can
	Fuller     json.RawMessage // the movement's result with the reports that came late; nil for none
	Late       string          // the names of those reports
	Refusal    *Refusal
	Raw        string // the data as the provider wrote it, for operators
	Detail     string // why it says so, for operators; no secrets

	// Proves says of NotFound and Absent that it was asked on the movement's own
	// account, and that the process's clock is right.
	Proves bool

	Override *Override // of operators
	Message  string    // what a merchant reads of a movement that has ended so
	Begun    time.Time // when operators' override began to be applied, or mutations to be read
}

// State is the state that a status update puts a movement in, and whether the fact
// is one.
func (f Fact) State() (State, bool) {
	switch f.Says {
	case SaysPending:
		return Pending, true
	case SaysSucceeded:
		return Succeeded, true
	case SaysFailed:
		return Failed, true
	case SaysExpired:
		return Expired, true
	case SaysNothing, SaysAccepted, SaysRefused, SaysNotSent, SaysNotFound, SaysAbsent, SaysReadThrough, SaysDiffers, SaysCancelled, SaysOverridden, SaysOverdue, SaysErrored:
	}
	return "", false
}
