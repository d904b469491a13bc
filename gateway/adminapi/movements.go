package adminapi

import (
	"encoding/json"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Movement is one use of a money operation with everything that is kept of it.
// Amounts are whole rupiah. Times that have not come are left out.
type Movement struct {
	ID                string                  `json:"id"`
	MerchantID        string                  `json:"merchant_id"`
	Mode              string                  `json:"mode"`                // live or test
	Kind              string                  `json:"kind"`                // payment, collection, transfer or order
	Reference         string                  `json:"reference,omitempty"` // the merchant's, left out where it gave none
	Operation         string                  `json:"operation"`
	Provider          string                  `json:"provider"`
	State             string                  `json:"state"`
	Attempt           int                     `json:"attempt"`
	Amount            money.Amount            `json:"amount"`
	Request           json.RawMessage         `json:"request,omitempty"` // without any key
	Result            json.RawMessage         `json:"result,omitempty"`  // the provider's
	RefusalCode       string                  `json:"refusal_code,omitempty"`
	RefusalMessage    string                  `json:"refusal_message,omitempty"`
	UpstreamReference string                  `json:"upstream_reference"`
	ProviderReference string                  `json:"provider_reference,omitempty"`
	FactID            string                  `json:"fact_id,omitempty"`
	RequestID         string                  `json:"request_id,omitempty"`
	PolicyVersion     string                  `json:"policy_version,omitempty"`
	DecisionID        string                  `json:"decision_id,omitempty"` // the policy's
	Misses            int                     `json:"misses,omitempty"`      // lookups that found nothing, one after the other
	CreatedAt         time.Time               `json:"created_at"`
	UpdatedAt         time.Time               `json:"updated_at"`
	SendBy            *time.Time              `json:"send_by,omitempty"`
	ExpiresAt         *time.Time              `json:"expires_at,omitempty"`
	PolledAt          *time.Time              `json:"polled_at,omitempty"` // the last lookup
	DueAt             *time.Time              `json:"due_at,omitempty"`    // the next lookup
	PaidLateAt        *time.Time              `json:"paid_late_at,omitempty"`
	PaidAmount        money.Amount            `json:"paid_amount,omitempty"` // where it is not the amount asked for
	Returned          money.Amount            `json:"returned_amount,omitempty"`
	ReturnedAt        *time.Time              `json:"returned_at,omitempty"` // when all of it was gone
	Returns           []movement.Return       `json:"returns,omitempty"`
	History           []movement.HistoryEntry `json:"history"` // the oldest entry first

	Paying
	Trail
}

// Paying is the part of a movement that says on whose account and for how much.
type Paying struct {
	ConnectionOwner   string          `json:"connection_owner,omitempty"` // merchant or platform
	ConnectionVersion int64           `json:"connection_version,omitempty"`
	ConnectionAccount string          `json:"connection_account,omitempty"` // its name at the provider
	Charge            string          `json:"charge,omitempty"`             // charged or held: of the merchant's balance
	Cost              money.Amount    `json:"cost,omitempty"`               // at the provider
	Fee               money.Amount    `json:"fee,omitempty"`                // as the merchant is told
	NameMatch         *bool           `json:"name_match,omitempty"`         // left out where nobody knows
	Destination       string          `json:"destination,omitempty"`        // of a transfer, in the one form that rules and lists compare
	Quote             json.RawMessage `json:"quote,omitempty"`              // the provider's own
	Postings          []Posting       `json:"postings,omitempty"`
}

// Trail is the part of a movement that is kept beside its history.
type Trail struct {
	Answer      json.RawMessage     `json:"answer,omitempty"`       // the first one to the merchant
	CallbackURL string              `json:"callback_url,omitempty"` // the query's values are hidden
	Notes       []movement.Note     `json:"notes,omitempty"`
	Overrides   []movement.Override `json:"overrides,omitempty"`
	Exceptions  []Exception         `json:"exceptions,omitempty"` // the resolved ones too
	Callbacks   []Callback          `json:"callbacks,omitempty"`  // with their attempts, without their bodies
}

// Posting is a transaction of the ledger: what it adds to each account.
type Posting struct {
	Attempt   int       `json:"attempt"`
	Kind      string    `json:"kind"`
	At        time.Time `json:"at"`
	Available Rupiah    `json:"available"`
	Held      Rupiah    `json:"held"`
	Margin    Rupiah    `json:"margin"`
	Cost      Rupiah    `json:"cost"`
	Deposit   Rupiah    `json:"deposit"`
}

// MovementFilter says which movements of a merchant and a kind to list.
type MovementFilter struct {
	Merchant string    `path:"merchant" arg:"" help:"The merchant's id."`
	Mode     string    `query:"mode" required:"" enum:"live,test" help:"live or test."`
	Kind     string    `query:"kind" kong:"-"` // payment, collection, order, refund or transfer
	Status   string    `query:"status" help:"Only those of which the merchant reads this, such as PAID."`
	Search   string    `query:"search" help:"A part of the reference, or the amount, the provider's reference or the payer's mail. A whole reference or id is found however old it is, anything else in 31 days."`
	Since    time.Time `query:"since" placeholder:"TIME" help:"Only those made from this time on, such as 2026-01-02T03:04:05Z."`
	Until    time.Time `query:"until" placeholder:"TIME" help:"Only those made before this time."`
	After    string    `query:"after" kong:"-"` // the next of the page before
	Limit    int       `query:"limit" default:"100" help:"At most so many (${default}, 1000 at most)."`
}

// MovementList is a page of a list, the newest movement first. Next is the after of the
// following page, or "" on the last one.
type MovementList struct {
	Movements []MovementLine `json:"movements"`
	Next      string         `json:"next,omitempty"`
}

// MovementLine is a movement in a list. Status is what its merchant reads in answers and
// callbacks; State is the gateway's.
type MovementLine struct {
	CreatedAt         time.Time    `json:"created_at" column:"CREATED"`
	ID                string       `json:"id" column:"ID"`
	Reference         string       `json:"reference,omitempty" column:"REFERENCE" quoted:""` // left out where the merchant gave none
	Status            string       `json:"status" column:"STATUS"`
	State             string       `json:"state"` // returned where nothing of a success is left
	Amount            money.Amount `json:"amount" column:"AMOUNT"`
	Channel           string       `json:"channel,omitempty" column:"CHANNEL" otherwise:"-"`
	Provider          string       `json:"provider"`
	ProviderReference string       `json:"provider_reference,omitempty"`
	PaidAt            *time.Time   `json:"paid_at,omitempty"`
}

// CallbackFigureFilter says since when to count callbacks by days, of which there may be 31.
type CallbackFigureFilter struct {
	Merchant string    `path:"merchant"`
	Mode     string    `query:"mode"`
	Since    time.Time `query:"since"`
}

// FigureFilter says what to count, and whether by days, of which there may be 31.
type FigureFilter struct {
	MovementFilter

	By string `query:"by"` // day, or "" for all at once
}

// Figures are a list in numbers. TooMany: the list has more than 50000 movements, so none
// are told; a shorter time has fewer.
type Figures struct {
	TooMany bool         `json:"too_many,omitempty"`
	Spans   []FigureSpan `json:"spans"` // the oldest first
}

// FigureSpan is what was made in a day, or in all of a list's time. Timed are those of which
// it is known when they were paid, or delivered: half of them within the median.
type FigureSpan struct {
	From     time.Time     `json:"from"`
	Counts   []FigureCount `json:"counts"`
	Timed    int64         `json:"timed"`
	MedianMS int64         `json:"median_ms"`
	P95MS    int64         `json:"p95_ms"`
}

// FigureCount is how many stand in a status and were paid by a channel, and the sum of
// their amounts.
type FigureCount struct {
	Status  string `json:"status"`
	Channel string `json:"channel"`
	Count   int64  `json:"count"`
	Amount  int64  `json:"amount"`
}

// NewOverride says how an open movement ended, whose provider tells no end, or that an order is to be sent again. Alone needs no second operator up
// to approval_above, and is reviewed afterwards.
type NewOverride struct {
	Movement string `path:"movement" json:"-" arg:"" name:"id" help:"Its id, refId, txId or upstream reference."`
	As       string `json:"as" required:"" enum:"success,failed,resubmit" help:"success, failed, or resubmit: an order that no provider has confirmed is sent again."`
	Reason   string `json:"reason" required:"" help:"How that is known; kept in the audit."` // 1 to 500 characters
	Alone    bool   `json:"alone,omitempty" help:"Without a second operator; it then becomes an exception for review."`
}

// Overridden is a movement's state after an override. Waiting: another operator
// has to say the same first.
type Overridden struct {
	ID         string            `json:"id"`
	MerchantID string            `json:"merchant_id"`
	Mode       string            `json:"mode"`
	Kind       string            `json:"kind"`
	Reference  string            `json:"reference,omitempty"`
	State      string            `json:"state"`
	Waiting    bool              `json:"waiting"`
	Override   movement.Override `json:"override"`
}

// FindResult is every movement that an id belongs to, the newest first. Since
// bounds the search for ids that only a scan finds.
type FindResult struct {
	ID        string          `json:"id"`
	Decision  *Decision       `json:"decision,omitempty"` // where the id is one of a decision
	Since     time.Time       `json:"since"`
	Movements []FoundMovement `json:"movements"`
	Places    []FoundPlace    `json:"places,omitempty"`
	More      bool            `json:"more,omitempty"`    // what only a scan finds was not looked for
	Request   *LoggedRequest  `json:"request,omitempty"` // the merchant's call, where the log has it
}

// FoundPlace is what an id belongs to that is no movement. Its name is a merchant's, a
// callback's event, or what somebody wrote about it.
type FoundPlace struct {
	Kind       string `json:"kind"`
	ID         string `json:"id"`
	Name       string `json:"name,omitempty"`
	MerchantID string `json:"merchant_id,omitempty"`
	Mode       string `json:"mode,omitempty"`
}

// The kinds of places.
const (
	PlaceMerchant   = "merchant"
	PlaceKey        = "key"
	PlaceCallback   = "callback"
	PlaceAdjustment = "adjustment"
	PlacePolicy     = "policy"
	PlaceActivation = "activation"
	PlaceReplica    = "replica"
)

// FoundMovement is a movement in short. By names the fields that hold the id. Its
// history has the callbacks and overrides in it, the oldest first.
type FoundMovement struct {
	By                []string                `json:"by"`
	ID                string                  `json:"id"`
	MerchantID        string                  `json:"merchant_id"`
	Mode              string                  `json:"mode"`
	Kind              string                  `json:"kind"`
	Reference         string                  `json:"reference,omitempty"` // left out where the merchant gave none
	Operation         string                  `json:"operation"`
	Provider          string                  `json:"provider"`
	State             string                  `json:"state"`
	Amount            money.Amount            `json:"amount"`
	RequestID         string                  `json:"request_id,omitempty"`
	DecisionID        string                  `json:"decision_id,omitempty"`
	PolicyVersion     string                  `json:"policy_version,omitempty"`
	UpstreamReference string                  `json:"upstream_reference"`
	ProviderReference string                  `json:"provider_reference,omitempty"`
	History           []movement.HistoryEntry `json:"history"`
}

// MovementID names a movement, by any id that belongs to it alone.
type MovementID struct {
	Movement string `path:"movement" arg:"" name:"id" help:"Any id that only this movement has."`
}

// Search says what to look for. Ids that only a scan finds are searched from since on, or in the last 31 days. A scan's time
// grows with the merchants and their movements; without one, what the gateway named itself is found.
type Search struct {
	ID    string    `query:"id" arg:"" name:"id" help:"Any id: of a request or decision, external_id or ref_id, refId or txId, upstream or provider reference; of a merchant (or its name), key, callback event, credit, policy, activation or replica."`
	Since time.Time `query:"since" placeholder:"TIME" help:"Search requests, decisions and provider references from this time on, such as 2026-01-02T03:04:05Z; the last 31 days unless given."`
	Scan  string    `query:"scan" kong:"-"` // false for none
	// Trace asks for the input and the trace of a refused decision. Reading them is in the merchant's audit.
	Trace bool `query:"trace" help:"Of a refused decision: what was asked for, and what the rules did with it. For operators with inputs: true; it is in the merchant's audit."`
}

// The acts on movements. An override of more than one operator may claim alone waits for another one.
var (
	ListMovements       = Endpoint[MovementFilter, MovementList]{Act{Route: "GET /admin/merchants/{merchant}/movements", Takes: Read, Text: "List a merchant's movements of a kind, the newest first."}}
	ShowFigures         = Endpoint[FigureFilter, Figures]{Act{Route: "GET /admin/merchants/{merchant}/figures", Takes: Read, Text: "Count a list of movements: by status and channel, and how long they took to be paid."}}
	ShowCallbackFigures = Endpoint[CallbackFigureFilter, Figures]{Act{Route: "GET /admin/merchants/{merchant}/callback-figures", Takes: Read, Text: "Count a merchant's callbacks by days: by state, and how long they took to be delivered."}}
	ShowMovement        = Endpoint[MovementID, Movement]{Act{Route: "GET /admin/movements/{movement}", Takes: Read, Text: "Show a movement by any id that belongs to it alone."}}
	OverrideMovement    = Endpoint[NewOverride, Overridden]{Act{Route: "POST /admin/movements/{movement}/override", Takes: MoveMoney, Text: "Say how an open movement ended."}}

	Find = Endpoint[Search, FindResult]{Act{Route: "GET /admin/find", Takes: Read, Text: "List the movements that an id belongs to, whoever made the id."}}
)
