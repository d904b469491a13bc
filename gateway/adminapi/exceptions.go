package adminapi

import "github.com/seed-f006e74d/gerbang/gateway/movement"

// Exception is what needs a person. Merchant, mode, subject, reason and fact
// identify it; ID is short for them and the same while it is open.
type Exception struct {
	ID string `json:"id"` // 12 hexadecimal digits
	movement.Exception
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
