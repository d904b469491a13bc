// Package policy decides who may do what, how fast and how often. It owns the input and the answers of two questions,
// compiled sets of Rego rules with their data and tests, their versions, and the active set. It is the door for OPA. It must
// not know HTTP or SQL, and it never reads a clock: time comes in as a parameter.
//
// A set answers two questions. Limits asks `data.gerbang.limits` with the merchant's record, the mode and the operation,
// and nothing else, so the answer (rates, quotas, markups and payout limits) is cached until one of them or the set
// changes. Admit asks `data.gerbang.admit` for each request, with amount, time and fields as well. Its answer is kept where
// the rules are found to depend on none of these. What is kept of one merchant answers for all whose records say the same,
// unless a rule looks at whose record it is. A question without an answer means no, and so does an error.
package policy

import (
	"encoding/json"
	"errors"
	"net/netip"
	"time"
)

// ErrNoAnswer is what Limits returns where the rules say nothing, as the default rules do for a tier without limits. The
// request must be refused; Admit usually knows the reason.
var ErrNoAnswer = errors.New("policy: no answer")

// Version names a set by what is in it: the SHA-256 of its files, in lower-case hexadecimal.
type Version string

// Merchant is the record of a merchant as rules see it.
type Merchant struct {
	ID     string
	Tier   string
	Status string
	Labels map[string]string
	// Limits are the merchant's own limits. A later one replaces an earlier one of the same name.
	Limits []OwnLimit
	// Version rises with each change of the record. Answers are kept under it and rules do not see it.
	Version int64
}

// OwnLimit is a limit on a merchant's record. It replaces that of the merchant's tier. Zero fields say nothing.
type OwnLimit struct {
	// Name is that of a rate ("default") or of a quota.
	Name          string
	RatePerSecond float64
	Burst         int64
	// Limit is a quota's size for one period; nil says nothing, zero allows none.
	Limit *int64
	// Markup, in rupiah, and Payout go before those of the tier. Rules see them beside the limits, without a name.
	Markup *int64
	Payout *Payout
	// ExpiresAt ends the limit; zero means never. It is judged before the rules run, so they see only limits in force.
	ExpiresAt time.Time
}

// Payout is what bounds a merchant's own transfers. Zero fields say nothing.
type Payout struct {
	Day            Outflow
	DestinationDay Outflow
	RepeatWithin   *time.Duration
}

// Operation is what the merchant asks for, as the provider's manifest declares it.
type Operation struct {
	Path     string
	Kind     string
	Provider string // the first of several
	Contract string // that the path is of, "" for none
}

// LimitsInput is all that the rules for limits may depend on.
type LimitsInput struct {
	Merchant  Merchant
	Mode      string
	Operation Operation
	// Now judges when the merchant's own limits expire. Rules do not see it.
	Now time.Time
}

// AdmitInput is what the rules of admission see of one request.
type AdmitInput struct {
	Merchant  Merchant
	Mode      string
	Operation Operation
	// Amount is in whole rupiah; nil where the operation has none.
	Amount *int64
	// Now is the time of the request. Rules see it as `input.now` (RFC 3339, UTC) and as the parts in `input.clock`,
	// which are read in the location that Now carries.
	Now time.Time
	// Fields are what the manifest offers to rules, as the merchant wrote it: strings, booleans, whole numbers, or lists and
	// maps of them.
	Fields map[string]any
	Parties
	// Address is the client's, where it is known. Rules see only the lists that it is on.
	Address netip.Addr
	// Lists are the names of the lists that hold something of the request. Listed, where it is given, tells them in place of
	// that: it is asked again once there is a quote, and only where rules look at `input.lists`.
	Lists  []string
	Listed func(AdmitInput) []string `json:"-"` // by value: nothing of a request escapes for it
	// Quote is what the quote of an operation says: a price, a fee, name_match. It is nil at the first evaluation, and rules
	// that read it say nothing then. Rules see it as `input.quote`, and as `input.told` too: sets of before that name are in
	// force.
	Quote map[string]any
}

// Parties are who and what a request is about, each in the one form that rules, lists, payout limits and impact compare. Rules
// see them as `input.destination`, `input.product` and `input.payer`, and don't see what is "".
type Parties struct {
	// Destination is where money or what is bought goes: of a transfer as its quote says.
	Destination string `json:"destination,omitempty"`
	Product     string `json:"product,omitempty"`
	Payer       string `json:"payer,omitempty"` // by mail
}

// Quoted is the input once the quote of its operation is known, nil for none. A price is the amount that rules see, and a
// destination that of its parties. Its numbers are int64, or json.Number where the quote was kept.
func (in AdmitInput) Quoted(quote map[string]any) AdmitInput {
	in.Quote = quote
	if to, told := quote["destination"].(string); told {
		in.Destination = to
	}
	switch price := quote["price"].(type) {
	case int64:
		in.Amount = &price
	case json.Number:
		if whole, err := price.Int64(); err == nil {
			in.Amount = &whole
		}
	}
	return in
}

// Limits are a merchant's rates, quotas, markup and payout limits. The value is shared by all who asked the same: do not
// change it.
type Limits struct {
	Rates     []Rate
	Quotas    []Quota
	Markup    Markup
	Transfers TransferLimits
	// RepeatWithin is for how long a transfer without a reference is refused that equals an earlier one; zero for never.
	RepeatWithin time.Duration
	// HigherFees lets a transfer be sent for which the provider takes a higher fee than the merchant is told.
	HigherFees bool
	// Unlogged is the share of successful requests that the log of requests leaves out, 0 to 1. What fails is always in it.
	Unlogged float64
	// Version is the set that answered.
	Version Version
}

// Rate allows requests at a steady pace and, after a pause, a burst.
type Rate struct {
	Name      string
	PerSecond float64
	Burst     int
	Per       Per
}

// Per is what each has a rate of its own, in each mode.
type Per string

// The merchant, each of its operations, or each of its API keys.
const (
	PerMerchant  Per = "merchant"
	PerOperation Per = "operation"
	PerKey       Per = "key"
)

// Bucket names what a request counts in. A name of a rate has no colon.
func (r Rate) Bucket(operation, key string) string {
	switch r.Per {
	case PerOperation:
		return r.Name + ":" + operation
	case PerKey:
		return r.Name + ":" + key
	case PerMerchant:
	}
	return r.Name
}

// Ticket is what a request runs by once the policy has decided on it.
type Ticket struct {
	DecisionID    string
	PolicyVersion string
	// Zone is the merchant's time zone: its days and months count.
	Zone *time.Location
	// Limits are the policy's limits for this merchant and operation; empty where it
	// refused.
	Limits Limits
	// Route names the providers that may serve the request, in their order; nil where
	// the policy leaves that to the gateway.
	Route []string
	// Remaining is what the scarcest quota has left; nil where no quota counts.
	Remaining *int64
}

// Quota allows a number of calls in one period.
type Quota struct {
	Name  string
	Limit int64
}

// Decision is the answer for one request.
type Decision struct {
	Allow bool
	// Reasons are sentences for the merchant, sorted. A refusal has at least one.
	Reasons []string
	// Version is the set that decided.
	Version Version
}
