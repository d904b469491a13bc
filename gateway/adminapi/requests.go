package adminapi

import (
	"time"
)

// Requests is what became of a merchant's requests in a mode in the last hour.
type Requests struct {
	MerchantID string         `json:"merchant_id"`
	Mode       string         `json:"mode"`
	Since      time.Time      `json:"since"`
	Requests   []RequestCount `json:"requests"` // the refused ones first, then by number
}

// RequestCount is how often requests for an operation were decided in one way. What was refused has the rule, and the
// reason where the rule gives every request the same. The limit is the one of the merchant's record as it is now.
type RequestCount struct {
	Operation string    `json:"operation"`
	Verdict   string    `json:"verdict"` // admitted, invalid, denied, slowed, over_quota or unjudged
	Rule      string    `json:"rule,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Limit     *LimitUse `json:"limit,omitempty"`
	N         int64     `json:"n"`
	Last      time.Time `json:"last"` // the minute
}

// Refusals is a page of a merchant's requests in a mode that were refused or failed, the newest first. Each replica keeps at
// most 100 a second of all merchants, for seven days.
type Refusals struct {
	MerchantID string    `json:"merchant_id"`
	Mode       string    `json:"mode"`
	Since      time.Time `json:"since"` // the page looked as far back as this
	Refusals   []Refusal `json:"refusals"`
	Next       string    `json:"next,omitempty"` // the after of the next page; the page may be empty where there is one
}

// Refusal is a request with what it was answered. Its decision tells more.
type Refusal struct {
	At         time.Time `json:"at"`
	Operation  string    `json:"operation"`
	Code       string    `json:"error_code,omitempty"`
	Message    string    `json:"message,omitempty"`
	RequestID  string    `json:"request_id,omitempty"`
	DecisionID string    `json:"decision_id"`
}

// RefusalFilter says which of a merchant's refused requests to list.
type RefusalFilter struct {
	Merchant string `path:"merchant"`
	Mode     string `query:"mode"`
	After    string `query:"after"`
	Limit    int    `query:"limit"`
}

// SearchOf is what is looked for among what belongs to one merchant in one mode: a refused or admitted request by the id of its
// decision, a movement or a refused request by the id of its request. Nothing of another merchant's is told.
type SearchOf struct {
	Merchant string `path:"merchant"`
	Mode     string `query:"mode"`
	ID       string `query:"id"`
}

// The acts on what merchants have asked for.
var (
	ListRequests = Endpoint[InMode, Requests]{Act{Route: "GET /admin/merchants/{merchant}/requests", Takes: Read, Text: "Count what was decided on a merchant's requests in the last hour."}}
	ListRefusals = Endpoint[RefusalFilter, Refusals]{Act{Route: "GET /admin/merchants/{merchant}/refusals", Takes: Read, Text: "List single requests that were refused or failed, the newest first."}}
	FindOf       = Endpoint[SearchOf, FindResult]{Act{Route: "GET /admin/merchants/{merchant}/find", Takes: Read, Text: "Find what belongs to one merchant in one mode."}}
	ShowTraffic  = Endpoint[None, Traffic]{Act{Route: "GET /admin/traffic", Takes: Read, Text: "Tell what became of merchants' requests in the last minutes."}}
)
