package adminapi

import (
	"time"
)

// Exception is what needs a person. Merchant, mode, subject, reason and fact
// identify it; ID is short for them and the same while it is open. The resolved
// fields are there once somebody has resolved it.
type Exception struct {
	ID         string     `json:"id"` // 12 hexadecimal digits
	MerchantID string     `json:"merchant_id"`
	Mode       string     `json:"mode"`
	Subject    string     `json:"subject"` // what it is about: usually a movement's id
	Reason     string     `json:"reason"`  // such as amount_differs
	FactID     string     `json:"fact_id"` // the provider's id of what happened, or ""
	Provider   string     `json:"provider"`
	Detail     string     `json:"detail"`
	At         time.Time  `json:"at"`
	Times      int64      `json:"times,omitempty"` // how often it has come since then, of one that is counted
	ResolvedAt *time.Time `json:"resolved_at,omitempty"`
	ResolvedBy string     `json:"resolved_by,omitempty"` // operators' names
	Resolution string     `json:"resolution,omitempty"`
}

// Resolution resolves an exception and says how.
type Resolution struct {
	MerchantID string `json:"merchant_id"`
	Mode       string `json:"mode"`
	Subject    string `json:"subject"`
	Reason     string `json:"reason"`
	FactID     string `json:"fact_id,omitempty"`
	Resolution string `json:"resolution"` // 1 to 500 characters
}

// ExceptionFilter bounds the list of exceptions.
type ExceptionFilter struct {
	Limit int `query:"limit"`
}

// The acts on exceptions.
var (
	ListExceptions   = Endpoint[ExceptionFilter, []Exception]{Act{Route: "GET /admin/exceptions", Takes: Read, Text: "List the open exceptions, the newest first."}}
	ResolveException = Endpoint[Resolution, None]{Act{Route: "POST /admin/exceptions/resolve", Takes: Resolve, Text: "Take an exception off the list."}}
)
