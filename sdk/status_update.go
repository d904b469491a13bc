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
	// Cost and Quote are those of the call.
	Cost  money.Amount
	Quote json.RawMessage
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
