package adminapi

import (
	"time"

	"github.com/seed-f006e74d/gerbang/tenants"
)

// NewMerchant asks for a merchant.
type NewMerchant struct {
	Name   string            `json:"name" arg:"" help:"As payers read it."`                        // 1 to 200 characters
	Tier   string            `json:"tier" required:"" help:"Decides limits; one of the policy's."` // in force
	Labels map[string]string `json:"labels,omitempty" name:"label" placeholder:"NAME=VALUE" help:"For policies, time_zone, and what payers see; may be repeated."`
}

// CreatedMerchant is a new merchant with its secrets, which are shown this once.
type CreatedMerchant struct {
	MerchantID         string `json:"merchant_id"`
	Name               string `json:"name"`
	Tier               string `json:"tier"`
	Status             string `json:"status"`
	LiveKey            string `json:"live_key"`
	TestKey            string `json:"test_key"`
	CallbackSecret     string `json:"callback_secret"`
	TestCallbackSecret string `json:"test_callback_secret"`
}

// Merchant is a merchant without any secret.
type Merchant struct {
	MerchantID  string            `json:"merchant_id" column:"MERCHANT"`
	Tier        string            `json:"tier" column:"TIER"`
	Status      string            `json:"status" column:"STATUS"` // active or suspended
	CreatedAt   time.Time         `json:"created_at" column:"CREATED"`
	Name        string            `json:"name" column:"NAME"`
	Labels      map[string]string `json:"labels,omitempty"`
	Version     int64             `json:"version"`               // of the record; each change adds one
	Keys        []Key             `json:"keys,omitempty"`        // not in lists
	Connections []Connection      `json:"connections,omitempty"` // not in lists
	Callbacks   []CallbackSetup   `json:"callbacks,omitempty"`   // not in lists
	Limits      []Limit           `json:"limits,omitempty"`      // its own; not in lists
	Pauses      []tenants.Pause   `json:"pauses,omitempty"`      // not in lists
}

// MerchantPage is a page of the list of merchants. Next is the after of the
// following page, or "" on the last one.
type MerchantPage struct {
	Merchants []Merchant `json:"merchants"`
	Next      string     `json:"next,omitempty"`
}

// MerchantID names a merchant, or platform where that has the act, too.
type MerchantID struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
}

// InMode names a merchant and one of its modes, live unless given.
type InMode struct {
	Merchant string `path:"merchant" arg:"" help:"The merchant's id."`
	Mode     string `query:"mode" enum:"live,test" default:"live" help:"live or test (${default})."`
}

// MerchantFilter says which merchants to list: those after an id.
type MerchantFilter struct {
	After string `query:"after"`
	Limit int    `query:"limit"`
}

// StatusChange suspends a merchant or ends a suspension.
type StatusChange struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Reason   string `json:"reason,omitempty" help:"Why; kept in the audit."` // at most 500 characters, as all reasons
}

// TierChange moves a merchant to another tier.
type TierChange struct {
	Merchant string `path:"merchant" json:"-" arg:"" help:"The merchant's id."`
	Tier     string `json:"tier" arg:"" help:"One of the policy's."`
	Reason   string `json:"reason,omitempty" help:"Why; kept in the audit."`
}

// LabelChange gives a merchant labels, or takes away those that are null.
type LabelChange struct {
	Merchant string             `path:"merchant" json:"-"`
	Labels   map[string]*string `json:"labels"`
	Reason   string             `json:"reason,omitempty"`
}

// The acts on merchants. A change is answered with the merchant as it now is.
var (
	CreateMerchant  = Endpoint[NewMerchant, CreatedMerchant]{Act{Route: "POST /admin/merchants", Takes: Administer, Text: "Make a merchant with a live and a test key."}}
	ListMerchants   = Endpoint[MerchantFilter, MerchantPage]{Act{Route: "GET /admin/merchants", Takes: Read, Text: "List merchants by their ids."}}
	ShowMerchant    = Endpoint[MerchantID, Merchant]{Act{Route: "GET /admin/merchants/{merchant}", Takes: Read, Platform: true, Text: "Show a merchant without any secret."}}
	SuspendMerchant = Endpoint[StatusChange, Merchant]{Act{Route: "POST /admin/merchants/{merchant}/suspend", Takes: Administer, Text: "Stop a merchant."}}
	ResumeMerchant  = Endpoint[StatusChange, Merchant]{Act{Route: "POST /admin/merchants/{merchant}/resume", Takes: Administer, Text: "End a suspension."}}
	SetTier         = Endpoint[TierChange, Merchant]{Act{Route: "POST /admin/merchants/{merchant}/tier", Takes: ChangePolicy, Text: "Move a merchant to another tier."}}
	SetLabels       = Endpoint[LabelChange, Merchant]{Act{Route: "POST /admin/merchants/{merchant}/labels", Takes: ChangePolicy, Text: "Change a merchant's labels."}}
)
