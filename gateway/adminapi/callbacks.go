package adminapi

import (
	"encoding/json"
	"time"
)

// CallbackFilter says which callbacks to list. Everything but the mode may be left
// out.
type CallbackFilter struct {
	Merchant string    `path:"merchant" arg:"" help:"The merchant's id."`
	Mode     string    `query:"mode" required:"" enum:"live,test" help:"live or test."`
	State    string    `query:"state" enum:",waiting,delivered,gone,dead,none" default:"" help:"waiting, delivered, gone, dead or none; all unless given."`
	Since    time.Time `query:"since" placeholder:"TIME" help:"Only those made from this time on, such as 2026-01-02T03:04:05Z."`
	Until    time.Time `query:"until" placeholder:"TIME" help:"Only those made before this time."`
	After    string    `query:"after" kong:"-"` // the last event of the page before, whose time is Until
	Limit    int       `query:"limit" default:"100" help:"At most so many (${default}, 1000 at most)."`
}

// CallbackID names a callback event.
type CallbackID struct {
	Merchant string `path:"merchant" arg:"" help:"The merchant's id."`
	Event    string `path:"event" arg:"" help:"The event's id: webhook-id."`
	Mode     string `query:"mode" required:"" enum:"live,test" help:"live or test."`
}

// CallbackSetup is where callbacks of a mode go and how they are signed. A rotation
// of the secret is none, prepared (both secrets sign) or switched (X-Svc-Signature
// is made with the next one).
type CallbackSetup struct {
	Mode     string `json:"mode"`
	URL      string `json:"url,omitempty"` // the default; the query's values are hidden
	Rotation string `json:"rotation"`
}

// CallbackURL sets a merchant's default URL; "" clears it.
type CallbackURL struct {
	Merchant string  `path:"merchant" json:"-"`
	Mode     string  `json:"mode"`
	URL      *string `json:"url"`
}

// SecretChange is a step of a rotation of the callback secret.
type SecretChange struct {
	Action   string `json:"action" name:"step" arg:"" enum:"rotate,switch,finish,cancel" help:"rotate makes the next secret, shown this once: webhook-signature carries both from now on. switch signs X-Svc-Signature with the next. finish makes the next the only one. cancel drops the next."`
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Mode     string `json:"mode" required:"" enum:"live,test" help:"live or test."`
}

// ChangedSecret is the setup after a step of a rotation. The first step shows the
// next secret, this once.
type ChangedSecret struct {
	CallbackSetup

	CallbackSecret string `json:"callback_secret,omitempty"`
}

// Callback is one callback event and its delivery, without any secret.
type Callback struct {
	CreatedAt  time.Time         `json:"created_at" column:"CREATED"`
	EventID    string            `json:"event_id" column:"EVENT ID"`
	Event      string            `json:"event" column:"EVENT"`
	State      string            `json:"state" column:"STATE"` // waiting, delivered, gone, dead or none
	Tries      int               `json:"tries" column:"TRIES"`
	DueAt      *time.Time        `json:"due_at,omitempty" column:"DUE"`
	Reference  string            `json:"reference,omitempty" column:"REFERENCE" quoted:""`
	URL        string            `json:"url,omitempty" column:"URL"` // the query's values are hidden
	Mode       string            `json:"mode"`
	MovementID string            `json:"movement_id,omitempty"`
	Sequence   int               `json:"sequence"`
	Body       json.RawMessage   `json:"body,omitempty"`     // not in lists
	Attempts   []CallbackAttempt `json:"attempts,omitempty"` // not in lists
}

// CallbackAttempt is one attempt at a delivery.
type CallbackAttempt struct {
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	Status     int       `json:"status,omitempty"` // HTTP; left out where nothing answered
	Outcome    string    `json:"outcome"`
	Fault      string    `json:"fault,omitempty"`
	Answer     string    `json:"answer,omitempty"` // some headers, an empty line and the first 2 KiB of the body, masked
}

// ResendOrder names the callbacks to send again: one event, or those of a span of
// time whose delivery has ended.
type ResendOrder struct {
	Merchant string     `path:"merchant" json:"-"`
	Mode     string     `json:"mode"`
	EventID  string     `json:"event_id,omitempty"`
	Since    *time.Time `json:"since,omitempty"`  // required for a span, unless failed
	Until    *time.Time `json:"until,omitempty"`  // now unless given
	Failed   bool       `json:"failed,omitempty"` // only those that failed
}

// Resent is how many callbacks are sent again. Until is there where one request was
// not enough: the same order with it goes on.
type Resent struct {
	Resent int        `json:"resent"`
	Until  *time.Time `json:"until,omitempty"`
}

// TestOrder asks for a test callback, to the merchant's default URL unless
// another is given.
type TestOrder struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Mode     string `json:"mode" required:"" enum:"live,test" help:"live or test."`
	URL      string `json:"url,omitempty" name:"url" help:"The receiver; the merchant's default URL unless given."`
}

// SentTest is a test callback that was made and is due now.
type SentTest struct {
	EventID string `json:"event_id"`
	URL     string `json:"url"`
}

// ActionVerified is what the audit says of a receiver that verifies signatures.
const ActionVerified = "callback.verified"

// VerifiedCallback tells how a receiver answered a test callback, and one that somebody else had signed. It verifies
// signatures where it took the first with a 2xx and refused the second with 400, 401 or 403; the second is sent only after the first
// was taken.
type VerifiedCallback struct {
	URL      string `json:"url"`
	Verifies bool   `json:"verifies"`
	Signed   Tried  `json:"signed"`
	Forged   *Tried `json:"forged,omitempty"`
}

// Tried is an answer of a receiver.
type Tried struct {
	Status int    `json:"status,omitempty"` // left out where there was no answer
	Fault  string `json:"fault,omitempty"`
	Answer string `json:"answer,omitempty"` // its beginning
}

// The acts on callbacks.
var (
	ListCallbacks        = Endpoint[CallbackFilter, []Callback]{Act{Route: "GET /admin/merchants/{merchant}/callbacks", Takes: Read, Text: "List a merchant's callbacks, the newest first."}}
	ShowCallback         = Endpoint[CallbackID, Callback]{Act{Route: "GET /admin/merchants/{merchant}/callbacks/{event}", Takes: Read, Text: "Show a callback with its body and every attempt."}}
	ResendCallbacks      = Endpoint[ResendOrder, Resent]{Act{Route: "POST /admin/merchants/{merchant}/callbacks/resend", Takes: SendCallbacks, Text: "Send callbacks again, under the ids they had."}}
	TestCallback         = Endpoint[TestOrder, SentTest]{Act{Route: "POST /admin/merchants/{merchant}/callbacks/test", Takes: SendCallbacks, Text: "Send a test callback."}}
	VerifyCallback       = Endpoint[TestOrder, VerifiedCallback]{Act{Route: "POST /admin/merchants/{merchant}/callbacks/verify", Takes: SendCallbacks, Text: "Find out whether a receiver verifies signatures: send it a test callback, and one that is forged."}}
	SetCallbackURL       = Endpoint[CallbackURL, CallbackSetup]{Act{Route: "PUT /admin/merchants/{merchant}/callbacks/url", Takes: Administer, Text: "Set the default URL of callbacks, or clear it."}}
	ChangeCallbackSecret = Endpoint[SecretChange, ChangedSecret]{Act{Route: "POST /admin/merchants/{merchant}/callbacks/secret", Takes: Administer, Text: "Take a step of a rotation of the callback secret."}}
)
