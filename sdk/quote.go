package sdk

import (
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Quote asks what a money operation would cost, before the movement is reserved.
// It may ask the upstream, and moves no money.
type Quote struct {
	Operation  string // the path
	RequestID  string
	Connection Connection
	// Reference is the one under which the call will be made, if one is made, for
	// upstreams that want the same reference in an inquiry and its payment. Where the
	// quote is neither held nor open and the request has an amount, which means
	// nothing then, the call has another.
	Reference string
	Body      json.RawMessage // valid by the operation's request schema
	// Product is the item of the manifest's product list that the body names, nil
	// where the operation declares none.
	Product json.RawMessage
}

// Quoted is a handler's answer to a [Quote]. Outcome is Done when there is a
// price, Refused when the upstream or the plugin says no, else NotSent or
// Unknown. Nothing was reserved, so both mean the same to the caller.
type Quoted struct {
	Outcome Outcome
	Blame   Blame
	// Price is what the buyer pays, before the gateway's markup. Fee is the part of
	// the price that is a fee.
	Price, Fee money.Amount
	// Cost is what the upstream takes from the account at most. The call must not
	// buy for more.
	Cost money.Amount
	// Held says that the price is compared with the amount that the caller gave,
	// held at the reservation and captured at the end. Otherwise it is captured at
	// the reservation.
	Held bool
	// Open says that the caller chooses the amount: the request must have one, and
	// Price without Fee must equal it. Where neither Held nor Open is said, the
	// amount means nothing: an order is kept, called and looked up without it, and
	// is the same whatever it was.
	Open bool
	// Name is the destination's holder as the upstream has it, "" where it does not
	// say. In a quote of a transfer, Price is the transfer's amount, Fee the fee that
	// the merchant is shown, and Cost the amount with the upstream's own fee, 0 where
	// the upstream names none.
	Name string
	// Destination is a transfer's destination in one form, however the caller
	// writes it, so that limits of one destination hold.
	Destination string
	Data        json.RawMessage // given back with the call and its lookups
	Refusal     Refusal
	Detail      string // for operators; no secrets, never shown to merchants
}

// NoQuote is the answer where there is no quote. The result says why, see
// [Refuse], [DidNotSend] and [DontKnow].
func NoQuote(why Result) Quoted {
	return Quoted{Outcome: why.Outcome, Blame: why.Blame, Refusal: why.Refusal, Detail: why.Detail}
}
