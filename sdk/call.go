package sdk

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Connection is an account at the upstream, given with each call. Credentials
// are the JSON document that the manifest's connection schema describes; they
// must not be kept beyond the call except through [Instances].
type Connection struct {
	MerchantID  string
	Mode        string // "live" or "test"
	Version     int64  // rises whenever the credentials change; 0 of those that are only verified
	Credentials json.RawMessage
}

// Call is one use of an operation at the upstream.
type Call struct {
	Operation  string // the path
	RequestID  string
	Connection Connection
	// Reference is the gateway's own name of the movement, in the form that package
	// manifest tells: the only one under which the upstream may be asked for it. It is
	// unique over all merchants, and the same request keeps it: it is called again
	// under it after it was proven that nothing was sent, or by a gateway whose
	// database was restored. So what exists under it already is never a refusal.
	Reference string
	// ProviderReference is the upstream's id, where the movement already has one.
	ProviderReference string
	Amount            money.Amount
	Body              json.RawMessage // valid by the operation's request schema
	// SendBy is the moment after which nothing may be sent any more, by the plugin's own
	// clock: the gateway tells what is left, so that no clock has to be right. The SDK
	// checks it before the handler runs; a handler that prepares for long (a token, a
	// lookup) checks it again before it sends.
	SendBy time.Time
	// Cost is what it may cost at the upstream at most, and Quote the data of the
	// [Quoted]; both are empty where the operation has no quote.
	Cost  money.Amount
	Quote json.RawMessage
	// Payment is, for a refund, the payment that it gives back.
	Payment Payment
	// Product is, for a query, the item of the manifest's product list that the
	// body names; nil where the operation declares none.
	Product json.RawMessage
}

// Payment is a payment as the gateway and the upstream name it.
type Payment struct{ Reference, ProviderReference string }

// Outcome is the plugin's answer to what became of a call.
type Outcome int

// The outcomes. The zero value is the safe one: nobody knows, so the gateway
// looks the movement up and never sends it again on a guess.
const (
	Unknown Outcome = iota
	Done            // it happened and is final
	Pending         // the upstream accepted it; the final status comes later
	Refused         // the upstream said no, explicitly: nothing happened
	NotSent         // nothing reached the upstream, with certainty
)

// String is the outcome's name in logs and metrics.
func (o Outcome) String() string {
	switch o {
	case Done:
		return "done"
	case Pending:
		return "pending"
	case Refused:
		return "refused"
	case NotSent:
		return "not_sent"
	case Unknown:
	}
	return "unknown"
}

// Blame says whose fault it is that an outcome is unknown or not sent. In a
// refusal of a query or a quote, [BlameUpstream] says that the refusal is the
// upstream's: it uses quota, as a success does. Without it the plugin has refused
// by itself.
type Blame int

// Whose fault it is. The upstream's faults open the breaker; a refusal is no
// fault. A fault of our own account opens that account's breaker and alerts the
// operator. BlameLimit is for an account that asks more often than it may, such as
// 429: it opens that account's breaker, too, and alerts nobody, since it passes.
const (
	BlameNone Blame = iota
	BlameUpstream
	BlameAccount
	BlameLimit
)

// FieldFault is what a refusal says of one field of the request.
type FieldFault struct{ Field, Message string }

// Refusal is the upstream's explicit no, in words a merchant may read.
type Refusal struct {
	Code    RefusalCode
	Message string
	Fields  []FieldFault
}

// RefusalCode is the error code a merchant gets for a refusal.
type RefusalCode string

// The codes that a plugin may refuse with.
const (
	RefuseDestination RefusalCode = "DESTINATION_INVALID"
	RefuseOther       RefusalCode = "PROVIDER_REJECTED"
	RefuseProduct     RefusalCode = "PRODUCT_UNAVAILABLE"
	// RefuseRequest is for what the caller must change in its request, and for
	// quotes and queries alone.
	RefuseRequest RefusalCode = "INVALID_REQUEST"
)

// Result is a handler's answer to a [Call]. Make one with [Accepted],
// [Finished], [Refuse], [DidNotSend], [UpstreamError] or [DontKnow].
type Result struct {
	Outcome           Outcome
	Blame             Blame
	Data              json.RawMessage // as the operation's result schema has it
	ProviderReference string
	ExpiresAt         time.Time    // when the movement ends by itself; zero for never, which operators are told of after a month
	Amount            money.Amount // what it moved, or what an order cost; 0 where the upstream does not say
	Refusal           Refusal
	Detail            string // for operators; no secrets, never shown to merchants
	// Errored says of an unknown outcome that the upstream has ended the call itself,
	// with an error in its own format: nothing of it is under way any more. A proxy's
	// word, a 502, a 504 and a cut connection say no such thing.
	Errored bool
	// Mode is, of a verification, the mode that the credentials are for, "" where
	// nothing tells it.
	Mode string
}

// Accepted is the result of a call that the upstream accepted, and whose final
// status comes later. Data is marshalled to JSON; where that fails the outcome is
// unknown.
func Accepted(providerReference string, expiresAt time.Time, data any) Result {
	return withData(Result{Outcome: Pending, ProviderReference: providerReference, ExpiresAt: expiresAt}, data)
}

// Finished is the result of a call that is done.
func Finished(providerReference string, data any) Result {
	return withData(Result{Outcome: Done, ProviderReference: providerReference}, data)
}

func withData(r Result, data any) Result {
	encoded, err := json.Marshal(data)
	if err != nil {
		return DontKnow(BlameNone, "encode result: "+err.Error())
	}
	r.Data = encoded
	return r
}

// Refuse is the result of a call that the upstream refused explicitly.
func Refuse(code RefusalCode, message string, fields ...FieldFault) Result {
	return Result{Outcome: Refused, Refusal: Refusal{Code: code, Message: message, Fields: fields}}
}

// DidNotSend is the result of a call of which nothing reached the upstream, or
// which the upstream turned away before looking at it.
func DidNotSend(blame Blame, detail string) Result {
	return Result{Outcome: NotSent, Blame: blame, Detail: detail}
}

// DontKnow is the result of a call that was sent and not answered clearly.
func DontKnow(blame Blame, detail string) Result {
	return Result{Outcome: Unknown, Blame: blame, Detail: detail}
}

// UpstreamError is the result of a call that the upstream has ended with an error in
// its own format, which does not say whether anything was done.
func UpstreamError(detail string) Result {
	return Result{Outcome: Unknown, Blame: BlameUpstream, Detail: detail, Errored: true}
}

// Usable is the result of a verification of credentials that the upstream
// accepts. Account is what it calls the account, or "" where it does not say.
func Usable(account string) Result { return Result{Outcome: Done, ProviderReference: account} }
