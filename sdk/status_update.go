package sdk

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Lookup asks for the status of one movement. It may be asked at any time and any
// number of times, and makes no second movement.
type Lookup struct {
	Operation         string
	RequestID         string
	Connection        Connection
	Reference         string
	ProviderReference string // empty when the call was not answered
	Amount            money.Amount
	Body              json.RawMessage // the request as it was sent
	SentAt            time.Time       // at the latest, where the gateway's database was restored and has lost it
	ExpiresAt         time.Time       // zero when unknown
	// Cost, Quote and Payment are those of the call.
	Cost    money.Amount
	Quote   json.RawMessage
	Payment Payment
	// SendBy is set where the manifest says that a lookup is the same request
	// again, by the plugin's own clock. Nothing may be sent after it. The SDK checks it before the handler
	// runs.
	SendBy time.Time
}

// Status is the status of a movement at the upstream.
type Status int

// The statuses. StatusUnknown means that the upstream could not be asked.
// StatusNotFound means that it answered and has no such movement.
const (
	StatusUnknown Status = iota
	StatusNotFound
	StatusPending
	StatusDone
	StatusFailed
	StatusExpired
)

// String is the status's name in logs and metrics.
func (s Status) String() string {
	switch s {
	case StatusNotFound:
		return "not_found"
	case StatusPending:
		return "pending"
	case StatusDone:
		return "done"
	case StatusFailed:
		return "failed"
	case StatusExpired:
		return "expired"
	case StatusUnknown:
	}
	return "unknown"
}

// StatusUpdate is what the upstream says of one movement. The gateway checks
// reference, amount and currency against its own record before it applies one.
type StatusUpdate struct {
	Reference         string
	ProviderReference string
	Status            Status
	Amount            money.Amount // what was paid, or what an order cost, where it is done; else the amount asked for
	Currency          string       // "IDR"
	EventID           string       // the upstream's id of this fact, the same on repeats
	At                time.Time    // when it happened, zero where the upstream does not say
	Channel           string       // how it was paid, in the upstream's words: a bank, a wallet, QRIS; "" where it does not say
	Data              json.RawMessage
	ExpiresAt         time.Time
	Blame             Blame
	Detail            string
	// Returns are money of it that went back: of a lookup all that the upstream knows, of
	// a notification at least its own. With StatusUnknown it says no more than that.
	Returns []Return
}

// ReturnSort is why money went back.
type ReturnSort int

// The sorts of returns. ReturnUnknown is an exception for operators.
const (
	ReturnUnknown    ReturnSort = iota
	ReturnRefund                // the merchant gave it back, or the upstream for it
	ReturnVoid                  // taken back before it was settled
	ReturnChargeback            // the payer's bank took it back
	ReturnReversal              // the upstream took it back
)

// String is the sort's name, as merchants read it.
func (s ReturnSort) String() string {
	switch s {
	case ReturnRefund:
		return "refund"
	case ReturnVoid:
		return "void"
	case ReturnChargeback:
		return "chargeback"
	case ReturnReversal:
		return "reversal"
	case ReturnUnknown:
	}
	return "unknown"
}

// Return is money of a movement that went back. A refund that is under way is none yet.
type Return struct {
	// ID is the upstream's, the same in lookups and notifications. Where the upstream has
	// none, the sort stands for it: there is one of each at most then.
	ID       string
	Sort     ReturnSort
	Amount   money.Amount
	At       time.Time // zero where the upstream does not say
	Undone   bool      // the money came again: a dispute was won, a refund failed
	UndoneAt time.Time
	// Reference is that of the [Call] that has ordered it, where this is a refund of the
	// gateway's and the upstream tells that name.
	Reference string
}

// Unread is the update of a genuine notification about a movement that the plugin does not
// understand: an operator reads the detail. Where the upstream names no reference, and what
// it names may be the gateway's, that stands in ProviderReference.
func Unread(reference, event, detail string) StatusUpdate {
	return StatusUpdate{Reference: reference, EventID: event, Detail: detail}
}

// NoStatus is the status update of a lookup that could not be asked.
func NoStatus(blame Blame, detail string) StatusUpdate {
	return StatusUpdate{Status: StatusUnknown, Blame: blame, Detail: detail}
}

// Notification is an inbound HTTP request on the connection's notification
// route. Anybody may have sent it, until the plugin has verified it.
type Notification struct {
	Connection Connection
	RequestID  string
	Method     string
	Query      string
	Header     http.Header
	Body       []byte
}

// Acknowledgement is a handler's answer to a [Notification]: its verified status
// updates, and the HTTP answer, which is sent after the gateway has committed
// them. A notification that can't be verified has no status updates and a 4xx
// status.
type Acknowledgement struct {
	Updates     []StatusUpdate
	Status      int
	ContentType string
	Body        []byte
	Detail      string
}
