package fault

import (
	"net/http"
	"time"
)

// Envelope is the JSON body of every refused request, for merchants and
// operators alike.
type Envelope struct {
	Success        bool    `json:"success"` // always false
	Message        string  `json:"message"`
	Code           Code    `json:"error_code"`
	RequestID      string  `json:"request_id"`
	Errors         []Field `json:"errors,omitempty"`
	Sent           Sent    `json:"sent"`
	Retry          Retry   `json:"retry"`
	RetryAt        string  `json:"retry_at,omitempty"` // RFC 3339, in whole seconds
	ExternalID     string  `json:"external_id,omitempty"`
	RefID          string  `json:"ref_id,omitempty"`
	RemainingQuota *int    `json:"remaining_quota,omitempty"` // 0 with QUOTA_EXCEEDED
	Data           any     `json:"data,omitempty"`            // the earlier one, with DUPLICATE_TRANSFER
}

// Envelope is the error as a body. The reference is left out, because the
// operation decides whether it is an external_id or a ref_id.
func (e *Error) Envelope(requestID string) Envelope {
	out := Envelope{Message: e.Message, Code: e.Code, RequestID: requestID, Errors: e.Fields, Sent: e.Sent, Retry: e.Retry, Data: e.Data}
	if !e.RetryAt.IsZero() {
		// Rounded up: a request at that second is not too early.
		out.RetryAt = e.RetryAt.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	if e.Code == QuotaExceeded {
		out.RemainingQuota = new(int)
	}
	return out
}

// maxRetrySeconds bounds Retry-After; retry_at tells the real time.
const maxRetrySeconds = 3600

// RetrySeconds is the Retry-After header, 1 to 3600 seconds, or 0 for none.
func (e *Error) RetrySeconds(now time.Time) int {
	wait := e.RetryAfter
	if wait <= 0 && !e.RetryAt.IsZero() {
		wait = max(e.RetryAt.Sub(now), 1)
	}
	if wait <= 0 && (e.Code == InProgress || e.Status() == http.StatusTooManyRequests) {
		wait = 1
	}
	if wait <= 0 {
		return 0
	}
	return int(min((wait+time.Second-1)/time.Second, maxRetrySeconds))
}
