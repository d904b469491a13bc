package movement

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Owner is whose movement it is, and in which mode.
type Owner struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"` // "live" or "test"
}

// Key is how a merchant names a movement: unique per merchant, mode and kind.
type Key struct {
	Owner     Owner
	Kind      manifest.Kind
	Reference string
}

// Movement is one use of a money operation: one row, one reference, one state.
// What only some kinds have stands in parts of its own.
type Movement struct {
	Key
	ID        ID
	Attempt   int // tells the reservations of this reference apart in the database: 1, then ever greater
	Operation string
	Provider  string
	State     State
	Sequence  int // of the last entry of its history

	Amount  money.Amount    // asked for; of an order what its merchant pays
	Quote   json.RawMessage // the provider's own, given back with the call; nil for none
	Request json.RawMessage // canonical JSON of path and body, without credentials
	Result  json.RawMessage // what the provider gave: a page, a QR string; nil until accepted
	Answer  json.RawMessage // the first answer's data, for replays; nil until there was one
	Refusal *Refusal        // set when the provider refused

	// The connection that it was sent on: whose it is, its version then, and its
	// account at the provider where a lookup may not ask another.
	ConnectionOwner   manifest.Owner
	ConnectionVersion int64
	ConnectionAccount string

	ProviderReference string
	FactID            string // the upstream's id of the fact that ended it
	CallbackURL       string
	RequestID         string // of the request that reserved it
	PolicyVersion     string
	DecisionID        string

	SendBy     time.Time
	ErroredAt  time.Time // when the provider ended the call with an error of its own, zero where it did not
	CreatedAt  time.Time
	UpdatedAt  time.Time // of the last change of state
	ExpiresAt  time.Time // zero when the provider named no end
	PaidAt     time.Time // when its payer paid, zero where nobody tells
	Channel    string    // how, in the provider's words; "" where nobody tells
	PaidLateAt time.Time
	ReturnedAt time.Time    // when all of the money was gone, zero while any is there
	PaidAmount money.Amount // what arrived where that is not the amount asked for, else 0
	Returns    []Return     // of money that went back

	Polled
	Purchase
	Payout
	Collected
}

// Polled is what is known of asking the provider about a movement.
type Polled struct {
	PolledAt time.Time // of the last lookup, zero for none
	Misses   int       // lookups in a row that answered "not found" and count as proof
	DueAt    time.Time // of the next one that nobody has to ask for, zero for never
	// Version counts the polls and the changes of state, as long as there is anything
	// left to ask: whoever changes the movement names the one that was seen. 0 is none.
	Version int64
}

// Purchase is the part of what is paid from a merchant's balance: orders.
type Purchase struct {
	Cost   money.Amount // at the provider: at most, and what it was once it has succeeded
	Charge Charge
}

// Payout is the part of money that goes out: transfers.
type Payout struct {
	Fee         money.Amount // what the merchant is told that it costs
	NameMatch   *bool        // whether the recipient is called as the request says; nil where nobody knows
	Destination string       // where it goes, as [Destination] writes it; "" for those of before that was kept
	Usage       []Usage      // of payout limits, until it fails
	Fingerprint string       // of one that its caller gave no reference: equal for equal ones; else ""
	// RepeatWithin is for how long an equal one without a reference is refused; zero once
	// it is reserved.
	RepeatWithin time.Duration
}

// Collected is the part of what is paid by a line of a statement: collections.
type Collected struct {
	Reserved  ReservedAmount // what the reservation takes; zero once it is through
	Remaining *int64         // what the quota of its request leaves, nil where none counts it
	// ReportsLate is how late lines of the account may be; zero once it is reserved.
	ReportsLate time.Duration
}

// ReservedAmount is the payable amount of a collection: the amount asked for and a
// code, which only one open collection of the account has.
type ReservedAmount struct {
	Account AccountID
	FreeAt  time.Time // when the amount may be another's
}

// Account is the account at the provider that a movement was made on.
func (m *Movement) Account() AccountID {
	return NewAccountID(m.Provider, m.Owner.Mode, m.ConnectionAccount)
}

// AccountID names an account at a provider in a mode, whoever owns it.
type AccountID uuid.UUID

// NewAccountID is the id of what a provider calls an account, always the same.
func NewAccountID(provider, mode, account string) AccountID {
	return AccountID(uuid.NewSHA1(uuid.NameSpaceURL, []byte(provider+"\x00"+mode+"\x00"+account)))
}

// String is the usual form with hyphens.
func (id AccountID) String() string { return uuid.UUID(id).String() }

// The codes that are added to what a collection asks for: few rupiah, as long as
// one of those is free.
const (
	SmallCodes = 99
	MostCodes  = 999
)

// Usage is what a movement counts against a payout limit.
type Usage struct {
	Name    string `json:"name"`
	Period  string `json:"period"`
	Amount  int64  `json:"amount"`
	Ceiling int64  `json:"-"` // of the policy at the reservation
}

// Charge is how a movement is paid from its merchant's balance.
type Charge string

// The charges. Unpaid movements touch no balance: the merchant's own account at
// the provider is used.
const (
	Unpaid  Charge = ""
	Charged Charge = "charged" // taken at the reservation, given back if it fails
	Held    Charge = "held"    // held at the reservation, taken if it succeeds, else released
)

// Refusal is a provider's explicit no, kept so that a replay tells the same.
type Refusal struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Fields  []RefusalField `json:"fields,omitempty"`
	// Unsent says that it is none of the provider's: what was answered as pending is
	// proven never sent.
	Unsent bool `json:"unsent,omitempty"`
}

// RefusalField is a refusal's word on one field of the request.
type RefusalField struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// SameRequest tells whether another request under this reference is the same
// one: its canonical JSON is equal.
func (m *Movement) SameRequest(canonical json.RawMessage) bool {
	return bytes.Equal(m.Request, canonical)
}

// Field is the value of a property of the request's body, nil where it has none.
func (m *Movement) Field(name string) json.RawMessage { return FieldOf(m.Body(), name) }

// FieldOf is the value of a property of an object, nil where it has none. The object is
// JSON as we write it: without spaces, and each name in its one shortest form. So it is
// walked and not parsed.
func FieldOf(object json.RawMessage, name string) json.RawMessage {
	rest, is := bytes.CutPrefix(object, []byte{'{'})
	if !is {
		return nil
	}
	var space [64]byte
	key, _ := jsontext.AppendQuote(space[:0], name) // what is no UTF-8 is replaced, as in the object
	key = append(key, ':')
	for len(rest) > 0 {
		n := memberLength(rest)
		if value, found := bytes.CutPrefix(rest[:n], key); found {
			return value[:len(value):len(value)] // who appends to it must not write into the object
		}
		rest = rest[min(n+1, len(rest)):]
	}
	return nil
}

// memberLength is where the first member of an object ends, of which the rest is given.
func memberLength(rest []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == '}'):
			return i
		case c == '}' || c == ']':
			depth--
		}
	}
	return len(rest)
}

// Body returns the request's body as it goes to the provider. A request is the
// canonical JSON of a body and the operation's path, so what stands between their names
// is the body and need not be parsed.
func (m *Movement) Body() json.RawMessage { return BodyOf(m.Request, m.Operation) }

// BodyOf is the body in the canonical request of an operation.
func BodyOf(request json.RawMessage, path string) json.RawMessage {
	if rest, begins := bytes.CutPrefix(request, []byte(`{"body":`)); begins {
		if body, ends := bytes.CutSuffix(rest, []byte(`,"path":"`+path+`"}`)); ends {
			return body[:len(body):len(body)] // who appends to it must not write into the request
		}
	}
	var whole struct {
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(request, &whole); err != nil {
		return nil
	}
	return whole.Body
}

// Listing says which movements of a merchant to list: those of a kind and some states
// that were created from Since until before Before and whose reference begins with a
// prefix, the newest first, after one of them (zero for the first). A search ("" for all)
// is a part of a reference, or an amount, a provider's reference or a payer's mail.
type Listing struct {
	Owner         Owner
	Kind          manifest.Kind
	States        []State
	Since, Before time.Time
	Prefix        string
	Search        string
	After         Movement
	Most          int
}

// UnnamedMark begins the reference of a transfer whose caller gave none. No caller's
// reference has a control character.
const UnnamedMark = "\x1e"

// Unnamed tells whether the movement's caller gave it no reference.
func (m *Movement) Unnamed() bool { return m.Fingerprint != "" }

// CallersReference is the movement's reference as its caller knows it, "" for none.
func (m *Movement) CallersReference() string {
	if m.Unnamed() {
		return ""
	}
	return m.Reference
}

// Errored tells whether the provider ended this attempt's call with an error of its own.
// A replica of an older version reserves anew without forgetting the last attempt's.
func (m *Movement) Errored() bool {
	return !m.ErroredAt.IsZero() && !m.ErroredAt.Before(m.CreatedAt)
}

// Answered tells whether the creation was answered.
func (m *Movement) Answered() bool { return m.Answer != nil }
