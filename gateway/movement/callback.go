package movement

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/google/uuid"
)

// CallbackState is where a callback stands.
type CallbackState string

// The states of a callback. Only a waiting one is due.
const (
	CallbackNone      CallbackState = "none" // there is nowhere to send it
	CallbackWaiting   CallbackState = "waiting"
	CallbackDelivered CallbackState = "delivered"
	CallbackGone      CallbackState = "gone" // its receiver wants no more of it
	CallbackDead      CallbackState = "dead" // given up
)

// CallbackKey names a callback.
type CallbackKey struct {
	Owner   Owner
	EventID uuid.UUID
}

// Callback is one event on its way to a merchant.
type Callback struct {
	CallbackKey
	MovementID ID  // zero for a test
	Sequence   int // the event's place in its movement's history
	Event      string
	Reference  string
	URL        string
	Body       json.RawMessage
	State      CallbackState
	Attempts   int // of this series; a delivery that is sent again begins a new one
	Tries      int // of all series
	CreatedAt  time.Time
	ResentAt   time.Time // when an ended delivery was last sent again, zero for never
	DueAt      time.Time
	Trace      string // what led to it, as package tracing tells it, "" where that was not traced
}

// Begun is when this series of tries began.
func (c Callback) Begun() time.Time {
	if c.ResentAt.IsZero() {
		return c.CreatedAt
	}
	return c.ResentAt
}

// DueCallbacks says which callbacks a dispatcher wants to read.
type DueCallbacks struct {
	Buckets  []int
	Held     []string    // keys of merchants and receivers that are left out
	UnderWay []uuid.UUID // events that are left out
	Since    time.Time
	Now      time.Time
	Most     int
}

// MerchantKey names a callback's merchant and mode, as DueCallbacks does.
func (c Callback) MerchantKey() string { return c.Owner.MerchantID + "/" + c.Owner.Mode }

// ReceiverKey names a callback's receiver at its merchant, as DueCallbacks does: the
// host and port as the URL spells them.
func (c Callback) ReceiverKey() string {
	var host string
	if parts := strings.SplitN(c.URL, "/", 4); len(parts) > 2 {
		host = parts[2]
	}
	return c.MerchantKey() + "/" + host
}

// CallbackAttempt is one try of a delivery, and what follows from it.
type CallbackAttempt struct {
	Callback Callback // as it was read: its count of tries is the guard
	At       time.Time
	Took     time.Duration
	Outcome  string
	Status   int // of HTTP, zero for no answer
	Fault    string
	Answer   string // the beginning of the receiver's answer
	Then     CallbackState
	DueAt    time.Time // of the next try, zero for none
}

// Postponed is a delivery that is put off.
type Postponed struct {
	CallbackKey
	Until time.Time
}

// CallbackRange names callbacks of a merchant: those of a state ("" for any)
// that were made in a span of time.
type CallbackRange struct {
	Owner        Owner
	State        CallbackState
	Since, Until time.Time
	After        uuid.UUID // of those made at Until, the ones before this event
	Most         int
}

// EventsSettle is how old an event is, by the database's clock, before its merchant can
// list it: longer than any commit stays open. Who has read past an event that was
// committed later would never see it.
const EventsSettle = 5 * time.Second

// ListedEvent is an event as its merchant reads it.
type ListedEvent struct {
	ID   uuid.UUID
	At   time.Time
	Body json.RawMessage
}
