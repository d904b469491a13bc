package movement

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
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
	Hinted bool      // of a lookup: a notification that proves nothing was the reason to ask

	Reference         string // the upstream reference that it is about
	ProviderReference string // "" where the provider told none that can be kept
	EventID           string // the upstream's id of the fact, "" for none
	Amount            money.Amount
	Returns           []Return  // money that went back, as far as it is told
	Currency          string    // "" is rupiah
	At                time.Time // when it happened, zero where nobody tells
	Channel           string    // how it was paid, in the provider's words; "" where it told none
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

// Effect is what a fact means for a movement.
type Effect int

// The effects. A contradiction fits nothing; it changes nothing and is an
// exception.
const (
	Nothing       Effect = iota
	Move                 // another state
	LateMoney            // a record beside the end: money came after it
	MoneyBack            // a record beside the end: money went back, or came again
	Supplement           // the result of a success grows
	KeepAnswer           // the creation's answer is known only now
	Renewal              // it may be resubmitted once more
	Contradiction        //
	Errored              // its call has ended, so not found is proof sooner
	OtherAmount          // a record beside the state: another amount has arrived
)

// Occasion says which of the kind's callback events a transition makes.
type Occasion int

// The occasions.
const (
	NoEvent Occasion = iota
	EndedEvent
	PaidLateEvent
	ReturnedEvent
	AmountEvent
)

// Event is the name of the event that a kind's merchants read of an occasion, ""
// for none.
func (r Rules) Event(o Occasion) string {
	switch o {
	case EndedEvent:
		return r.Events.Ended
	case PaidLateEvent:
		return r.Events.PaidLate
	case ReturnedEvent:
		return r.Events.Returned
	case AmountEvent:
		return r.Events.AmountDiffers
	case NoEvent:
	}
	return ""
}

// Transition is what a fact leads to, as data. The zero value changes nothing.
type Transition struct {
	Effect Effect
	From   []State // of a move: the states that it may leave
	To     State   // of a move

	Event  string // of the history, "" for none
	Detail string // of the history, JSON, no secrets

	// What is kept; the zero value leaves what is there.
	Result            json.RawMessage
	Refusal           *Refusal
	ProviderReference string
	FactID            string
	ExpiresAt         time.Time
	PaidAt            time.Time // of what a payer pays, and
	Channel           string    // how
	HappenedAt        time.Time // of late money and of what went back
	Cost              money.Amount
	PaidAmount        money.Amount // where it is not the amount asked for
	Return            *Return      // what went back or came again; nil for none

	Posting   *ledger.Transaction // nil for none
	GivesBack int                 // how often it gives its usage of payout limits back; -1 counts it again
	Releases  bool                // its reserved amount is free at once

	Answers bool     // the creation's answer is given now, from the result
	Tells   Occasion // the callback event that it makes
	Receipt bool     // a receipt to the payer

	// SendBy is, of a renewal, the moment from which the time counts anew in which a
	// resubmission may buy.
	SendBy time.Time

	// MissUntil says that a "not found" counts, and from when on the next one does.
	MissUntil time.Time
	NextPoll  time.Time // zero: nothing is left to find out

	Exceptions []Cause
}

// Cause is why a transition makes an exception.
type Cause struct {
	Reason string
	FactID string
	Detail string
}

// Change is a transition as it is committed: of which movement, when, and with what
// was rendered for it.
type Change struct {
	Transition
	Movement Movement // as it was seen: id, attempt, state and its poll's version are guards
	At       time.Time
	Answer   json.RawMessage // nil leaves what is there
	Callback *CallbackEvent  // nil for none
	Mail     *Mail           // nil for none
}

// The reasons of exceptions.
const (
	ReasonAmount        = "amount_differs"
	ReasonCurrency      = "currency_differs"
	ReasonPaidAgain     = "paid_again"
	ReasonPaidLate      = "paid_late"
	ReasonReturned      = "returned"
	ReasonNotUnderstood = "not_understood"
	ReasonVanished      = "vanished"
	ReasonContradiction = "contradiction"
	ReasonUnknown       = "unknown_reference"
	ReasonUnresolved    = "unresolved"
	ReasonAccount       = "our_account"
	ReasonFee           = "fee_differs"
	ReasonUnreadable    = "unreadable"
	ReasonStatement     = "statement"
	ReasonAmbiguous     = "ambiguous"
	ReasonUnmatched     = "unmatched"
	ReasonAlone         = "overridden_alone"
	ReasonRefused       = "notifications_refused"
	ReasonGone          = "callback_gone"
	ReasonPlugin        = "plugin_down"
	ReasonOutage        = "circuit_open"
	ReasonPolicy        = "policy_refused"
)

// posting is what a move does to the ledger, nil for nothing.
func (t *Transition) posting(m Movement, now time.Time) *ledger.Transaction {
	well := t.To == Succeeded
	switch {
	case m.Charge == Unpaid, !t.To.Ends():
		return nil
	case m.Charge == Charged && well:
		return m.posts(now, ledger.EndCost(t.Cost))
	case m.Charge == Charged:
		return m.posts(now, ledger.GiveBack(m.Amount))
	case well:
		return m.posts(now, ledger.EndCapture(m.Amount, t.Cost))
	}
	return m.posts(now, ledger.LetGo(m.Amount))
}

// Begins is how the paying of a movement begins, nil where it is not paid from a
// balance.
func (m *Movement) Begins() *ledger.Transaction {
	switch m.Charge {
	case Charged:
		return m.posts(m.CreatedAt, ledger.BeginCharge(m.Amount))
	case Held:
		return m.posts(m.CreatedAt, ledger.BeginHold(m.Amount))
	case Unpaid:
	}
	return nil
}

// Takes is what a reservation of the movement takes besides its reference: what its kind
// reserves, and nothing of a balance where it is not paid from one.
func (m *Movement) Takes() (Reserves, error) {
	rules, known := RulesOf(m.Kind)
	switch unpaid := m.Charge == Unpaid; {
	case !known:
		return 0, fmt.Errorf("%w: there is no kind %q", ErrInvalid, m.Kind)
	case !unpaid && m.Begins() == nil:
		return 0, fmt.Errorf("%w: there is no charge %q", ErrInvalid, m.Charge)
	case !unpaid && rules.Reserves != ReserveBalance:
		return 0, fmt.Errorf("%w: a %s takes nothing from a balance", ErrInvalid, m.Kind)
	case unpaid && rules.Reserves == ReserveBalance:
		return ReserveNothing, nil
	}
	return rules.Reserves, nil
}

func (m *Movement) posts(now time.Time, tx ledger.Transaction) *ledger.Transaction {
	tx.Subject, tx.Attempt, tx.Provider, tx.At = uuid.UUID(m.ID), m.Attempt, m.Provider, now
	return &tx
}

// givesBack is how often a move to a state gives usage back: once where the movement
// comes to nothing, and less than nothing where it has moved after all that was
// proven never sent.
func (m *Movement) givesBack(to State) int {
	ends := to == Failed || to == NotSubmitted
	switch freed := m.State == NotSubmitted; {
	case len(m.Usage) == 0, freed && ends:
		return 0
	case freed:
		return -1
	case ends:
		return 1
	}
	return 0
}

// detail is the JSON of a history's entry, from pairs of name and value; empty
// values are left out.
func detail(pairs ...string) string {
	text := []byte{'{'}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}
		if len(text) > 1 {
			text = append(text, ',')
		}
		name, _ := json.Marshal(pairs[i]) // strings
		value, _ := json.Marshal(pairs[i+1])
		text = append(append(append(text, name...), ':'), value...)
	}
	return string(append(text, '}'))
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// takeBack is what the return of a movement that was paid from a balance does.
func takeBack(m Movement) ledger.Transaction { return ledger.TakeBack(m.Amount, m.Cost) }

// steps are the postings that effects make.
var steps = map[Effect]ledger.Step{Move: ledger.Ends, MoneyBack: ledger.Reverses}

// Check refuses a change that is at odds with itself: one that changes nothing, would
// leave the ledger at odds with the movement, or would free a reference of which a
// merchant may have read Pending.
func (c Change) Check() error {
	pays := c.Movement.Charge != Unpaid && (c.Effect == MoneyBack || c.Effect == Move && c.To.Ends())
	switch {
	case c.Effect == Nothing || c.Effect == Contradiction:
		return fmt.Errorf("%w: effect %d is nothing to commit", ErrInvalid, c.Effect)
	case (c.Effect == MoneyBack) != (c.Return != nil) || c.Return != nil && c.Return.At.IsZero():
		return fmt.Errorf("%w: money that went back is a return with a time, and nothing else is", ErrInvalid)
	case c.Effect == LateMoney && (c.Movement.State == Succeeded || !c.Movement.State.Final() || !c.Movement.PaidLateAt.IsZero()):
		return fmt.Errorf("%w: late money comes once, after an end without it", ErrInvalid)
	case c.Effect == MoneyBack && c.Movement.State != Succeeded && c.Movement.PaidLateAt.IsZero():
		return fmt.Errorf("%w: nothing goes back of what has not come", ErrInvalid)
	case c.Effect == Move && !c.To.Open() && !c.To.Ends():
		return fmt.Errorf("%w: there is no state %q", ErrInvalid, c.To)
	case c.Effect == Move && c.To == NotSubmitted && !slices.Equal(c.From, []State{Submitting}):
		return fmt.Errorf("%w: only what is submitting becomes not submitted", ErrInvalid)
	case pays != (c.Posting != nil):
		return fmt.Errorf("%w: what is paid from a balance ends, and is given back, with a posting, and nothing else has one", ErrInvalid)
	case c.Posting == nil:
		return nil
	case c.Posting.Step != steps[c.Effect]:
		return fmt.Errorf("%w: a posting of another step", ErrInvalid)
	}
	return c.Posting.Check()
}

// After is the movement as a change leaves it.
func (c Change) After() Movement {
	m := c.Movement
	if c.Effect == Renewal {
		m.SendBy, m.Polled = c.SendBy, c.polled()
		m.Sequence++
	}
	if c.Effect == Errored {
		m.ErroredAt, m.Polled = c.At, c.polled()
		m.Sequence++
	}
	switch c.Effect {
	case Move, LateMoney, MoneyBack, OtherAmount:
	case Nothing, Supplement, KeepAnswer, Renewal, Contradiction, Errored:
		return c.keeps(m)
	}
	m.UpdatedAt = c.At
	m.Sequence++
	switch c.Effect {
	case LateMoney:
		m.PaidLateAt, m.Polled = c.HappenedAt, c.polled()
	case MoneyBack:
		m = m.withReturn(*c.Return)
	case Move:
		m.State, m.PaidAt, m.Polled = c.To, c.PaidAt, c.polled()
		if c.Refusal != nil {
			m.Refusal = c.Refusal
		}
		m.FactID, m.Cost, m.Channel = cmp.Or(c.FactID, m.FactID), cmp.Or(c.Cost, m.Cost), cmp.Or(c.Channel, m.Channel)
	case OtherAmount, Nothing, Supplement, KeepAnswer, Renewal, Contradiction, Errored:
	}
	m.PaidAmount = cmp.Or(c.PaidAmount, m.PaidAmount)
	return c.keeps(m)
}

// polled is what a change leaves of asking: nothing, where nothing is left to ask.
func (c Change) polled() Polled {
	switch was := c.Movement; {
	case (c.Effect == LateMoney || c.Effect == Move && (c.To.Final() || c.To == NotSubmitted)) && c.NextPoll.IsZero():
		return Polled{PolledAt: was.PolledAt}
	case was.State == NotSubmitted || c.Effect == LateMoney:
		return Polled{PolledAt: was.PolledAt, DueAt: c.NextPoll, Version: FirstVersion(was.Sequence + 1)}
	default:
		return Polled{PolledAt: was.PolledAt, DueAt: c.NextPoll, Version: was.Version + 1}
	}
}

func (c Change) keeps(m Movement) Movement {
	if c.Result != nil {
		m.Result = c.Result
	}
	if c.Answer != nil {
		m.Answer = c.Answer
	}
	m.ProviderReference = cmp.Or(c.ProviderReference, m.ProviderReference)
	if !c.ExpiresAt.IsZero() {
		m.ExpiresAt = c.ExpiresAt
	}
	return m
}

// CallbackEvent is what a merchant is told of a transition. It is written in the
// commit of the transition. Without a URL it is only listed by /events.
type CallbackEvent struct {
	ID    uuid.UUID // of the event, the same on every delivery
	Event string
	URL   string
	Body  json.RawMessage
}

// State is the state in which the callback of the event begins.
func (t *CallbackEvent) State() CallbackState {
	if t.URL == "" {
		return CallbackNone
	}
	return CallbackWaiting
}

// DueAt is when it is first delivered: now, or never without a URL.
func (t *CallbackEvent) DueAt(now time.Time) *time.Time {
	if t.URL == "" {
		return nil
	}
	now = now.UTC().Truncate(time.Microsecond)
	return &now
}

// Bucket is the bucket of the queue that delivers it.
func (t *CallbackEvent) Bucket() int32 { return int32(ID(t.ID).Bucket()) } //nolint:gosec // below Buckets

// Mail is a mail about a movement: it is written in the commit of what it tells,
// or not at all.
type Mail struct {
	ID      uuid.UUID // the same on every try
	To      string
	Subject string
	Text    string
	Until   time.Time // when its link ends, and it is not sent any more; zero without one
}

// Bucket is the bucket of the outbox that sends it.
func (m *Mail) Bucket() int32 { return int32(ID(m.ID).Bucket()) } //nolint:gosec // below Buckets
