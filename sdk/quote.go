package sdk

import (
	"encoding/json"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Quote asks what a money operation would cost, before anything is claimed. It
// may ask the upstream, and moves no money.
type Quote struct {
	Operation  string // the path
	RequestID  string
	Connection Connection
	// Reference is the name under which the call will be made, if one is made, for
	// upstreams that ask for the same name in an inquiry and its payment.
	Reference string
	Body      json.RawMessage // valid by the operation's request schema
	// Product is the item of the manifest's product list that the body names, nil
	// where the operation declares none.
	Product json.RawMessage
}

// Quoted is a handler's answer to a [Quote]. Outcome is Done when there is a
// price, Refused when the upstream or the plugin says no, else NotSent or
// Unknown; nothing was claimed, so both mean the same to the caller.
type Quoted struct {
	Outcome Outcome
	Blame   Blame
	// Price is what is sold costs whoever buys it, before the gateway's markup;
	// Fee is the part of it that is a fee.
	Price, Fee money.Amount
	// Cost is what the upstream takes from the account at most. The call must not
	// buy for more.
	Cost money.Amount
	// Held says that the price is held at the claim, compared with the amount that
	// the caller has given, and taken at the end. Otherwise it is taken at the claim.
	Held bool
	// Open says that the amount is the caller's to choose and not the price: the
	// request must have one, and Price without Fee must be it. Where neither is said, the amount means nothing: an order is
	// kept, called and looked up without it, and is the same whatever it was.
	Open bool
	// Name is the destination's holder as the upstream tells it, "" where it does
	// not. Of a transfer, Price is its amount, Fee what the merchant is told that it
	// costs, and Cost the amount with the fee that the upstream itself tells, 0
	// where it tells none.
	Name string
	// Destination is where a transfer goes in one form, however the caller writes
	// it, so that limits of one destination hold.
	Destination string
	Data        json.RawMessage // given back with the call and its lookups
	Refusal     Refusal
	Detail      string // for operators; no secrets, never shown to merchants
}

// NoQuote is the answer to a quote that was refused or could not be had: the
// word of a result that tells why, see [Refuse], [DidNotSend] and [DontKnow].
func NoQuote(why Result) Quoted {
	return Quoted{Outcome: why.Outcome, Blame: why.Blame, Refusal: why.Refusal, Detail: why.Detail}
}
