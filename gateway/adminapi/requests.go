package adminapi

import (
	"encoding/json"
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

// RequestLog is a page of a merchant's calls in a mode of the last seven days, the newest first. All that failed are there, and of those that
// succeeded as many as the policy says.
type RequestLog struct {
	MerchantID string          `json:"merchant_id"`
	Mode       string          `json:"mode"`
	Since      time.Time       `json:"since"`    // the page looked as far back as this
	NotKept    int64           `json:"not_kept"` // on the first page: calls of the last hour that there was no room for
	Unread     int             `json:"unread"`   // parts of the log that can't be read
	Requests   []LoggedRequest `json:"requests"`
	Next       string          `json:"next,omitempty"` // the after of the next page; the page may be empty where there is one
}

// LoggedRequest is a call with what it was answered. The fields from address on are where one is shown. Bodies are masked; one that is no
// JSON or longer than 16 KiB is told by its length alone, and of one that breaks off stands what was read.
type LoggedRequest struct {
	At            time.Time       `json:"at" column:"TIME"`
	RequestID     string          `json:"request_id" column:"REQUEST ID"`
	Operation     string          `json:"operation" column:"OPERATION"`
	Status        int             `json:"status" column:"HTTP"`
	Code          string          `json:"code" column:"CODE"` // OK, or the error's
	Reference     string          `json:"reference,omitempty" column:"REFERENCE" quoted:""`
	KeyName       string          `json:"key_name" column:"KEY" quoted:""`
	DurationMS    float64         `json:"duration_ms"`
	Mode          string          `json:"mode"`
	Method        string          `json:"method"`
	KeyID         string          `json:"key_id"`
	Message       string          `json:"message,omitempty"`
	DecisionID    string          `json:"decision_id,omitempty"`
	Replayed      bool            `json:"replayed,omitempty"`
	Address       string          `json:"address,omitempty"`
	Agent         string          `json:"user_agent,omitempty"`
	Sent          string          `json:"sent,omitempty"`
	Retry         string          `json:"retry,omitempty"`
	Asked         json.RawMessage `json:"asked,omitempty"`
	Answered      json.RawMessage `json:"answered,omitempty"`
	AskedBytes    int             `json:"asked_bytes,omitempty"`
	AnsweredBytes int             `json:"answered_bytes,omitempty"`
}

// RequestLogFilter says which of a merchant's calls to list.
type RequestLogFilter struct {
	Merchant  string `path:"merchant" arg:"" help:"The merchant's id."`
	Mode      string `query:"mode" required:"" enum:"live,test" help:"live or test."`
	State     string `query:"state" enum:",succeeded,failed" default:"" help:"succeeded or failed; all unless given."`
	Operation string `query:"operation" help:"Only those for this path."`
	Code      string `query:"code" help:"Only those that were answered with this error code, or OK."`
	ID        string `query:"id" name:"id" help:"Only those with this reference, request id or decision id."`
	After     string `query:"after" help:"Where the page before went on."`
	Limit     int    `query:"limit" default:"100" help:"At most so many (${default}, 1000 at most)."`
}

// LoggedRequestID names a call by the id of its request or its decision.
type LoggedRequestID struct {
	Merchant string `path:"merchant" arg:"" help:"The merchant's id."`
	Request  string `path:"request" arg:"" help:"The id of the request or its decision."`
	Mode     string `query:"mode" required:"" enum:"live,test" help:"live or test."`
}

// SearchOf is what is looked for among what belongs to one merchant in one mode: a request by the id of its decision, a
// movement or a request by the id of its request. Nothing of another merchant's is told.
type SearchOf struct {
	Merchant string `path:"merchant"`
	Mode     string `query:"mode"`
	ID       string `query:"id"`
}

// The acts on what merchants have asked for.
var (
	ListRequests      = Endpoint[InMode, Requests]{Act{Route: "GET /admin/merchants/{merchant}/requests", Takes: Read, Text: "Count what was decided on a merchant's requests in the last hour."}}
	ListRequestLog    = Endpoint[RequestLogFilter, RequestLog]{Act{Route: "GET /admin/merchants/{merchant}/request-log", Takes: Read, Text: "List a merchant's calls of the last seven days, the newest first."}}
	ShowLoggedRequest = Endpoint[LoggedRequestID, LoggedRequest]{Act{Route: "GET /admin/merchants/{merchant}/request-log/{request}", Takes: Read, Text: "Show a call with what was asked and answered, masked."}}
	FindOf            = Endpoint[SearchOf, FindResult]{Act{Route: "GET /admin/merchants/{merchant}/find", Takes: Read, Text: "Find what belongs to one merchant in one mode."}}
	ShowTraffic       = Endpoint[None, Traffic]{Act{Route: "GET /admin/traffic", Takes: Read, Text: "Tell what became of merchants' requests in the last minutes."}}
)
