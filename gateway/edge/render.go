package edge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
)

// Header names as the map of net/http has them.
const (
	headerRequestID          = "X-Request-Id"
	headerContentTypeOptions = "X-Content-Type-Options"
)

var noSniff = []string{"nosniff"}

// headerNames are the headers that carry the service's short name.
type headerNames struct {
	version, decision string
	versionValue      []string
}

func newHeaderNames(svc string) headerNames {
	return headerNames{
		version:      http.CanonicalHeaderKey("X-" + svc + "-Version"),
		decision:     http.CanonicalHeaderKey("X-" + svc + "-Decision-Id"),
		versionValue: []string{catalog.APIVersion},
	}
}

type success struct {
	Success bool   `json:"success"`
	Message string `json:"message,omitempty"`
	Status  string `json:"status,omitempty"`
	Data    any    `json:"data"`
}

type failure struct {
	Success        bool          `json:"success"`
	Message        string        `json:"message"`
	Code           fault.Code    `json:"error_code"`
	RequestID      string        `json:"request_id"`
	Errors         []fault.Field `json:"errors,omitempty"`
	Sent           fault.Sent    `json:"sent"`
	Retry          fault.Retry   `json:"retry"`
	RetryAt        string        `json:"retry_at,omitempty"`
	ExternalID     string        `json:"external_id,omitempty"`
	RefID          string        `json:"ref_id,omitempty"`
	RemainingQuota *int          `json:"remaining_quota,omitempty"`
}

// succeed renders an answer. One that can't be encoded is INTERNAL.
func (x *exchange) succeed(a lifecycle.Answer) {
	err := x.envelope(http.StatusOK, success{Success: true, Message: a.Message, Status: a.Status, Data: a.Data})
	if err != nil {
		x.fail(x.truthful(fmt.Errorf("encode the answer: %w", err)))
	}
}

// fail renders an error: the only place that does.
func (x *exchange) fail(f *fault.Error) {
	x.code = string(f.Code)
	x.logCause(f)
	out := failure{
		Message: f.Message, Code: f.Code, RequestID: x.id, Errors: f.Fields, Sent: f.Sent, Retry: f.Retry,
	}
	if !f.RetryAt.IsZero() {
		// Rounded up: who comes back at that second is not too early.
		out.RetryAt = f.RetryAt.Add(time.Second - 1).UTC().Truncate(time.Second).Format(time.RFC3339)
	}
	if wait := x.retryAfter(f); wait > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if f.Code == fault.AuthFailed {
		x.Header().Set("WWW-Authenticate", "Bearer")
	}
	if f.Code == fault.QuotaExceeded {
		out.RemainingQuota = new(int)
	}
	if reference := cmp.Or(f.Reference, x.reference); reference != "" {
		if x.operation != nil && x.operation.ReferenceField() == "ref_id" {
			out.RefID = reference
		} else {
			out.ExternalID = reference
		}
	}
	if err := x.envelope(f.Status(), out); err != nil {
		x.edge.Log.Error("encode an error", "request_id", x.id, "cause", err)
	}
}

// retryAfter is the Retry-After header in seconds, 1 to 3600, or 0 for none.
func (x *exchange) retryAfter(f *fault.Error) int {
	wait := f.RetryAfter
	if wait <= 0 && !f.RetryAt.IsZero() {
		wait = max(f.RetryAt.Sub(x.edge.Now()), 1)
	}
	if wait <= 0 && (f.Code == fault.InProgress || f.Status() == http.StatusTooManyRequests) {
		wait = 1
	}
	if wait <= 0 {
		return 0
	}
	return int(min((wait+time.Second-1)/time.Second, 3600))
}

// envelope writes status, headers and body. Nothing is written on an error.
func (x *exchange) envelope(status int, body any) error {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	encoder := json.NewEncoder(buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(body); err != nil {
		return err
	}
	header := x.Header()
	header["Content-Type"] = jsonType
	header["Cache-Control"] = noStore
	header["Content-Length"] = []string{strconv.Itoa(buffer.Len())}
	if x.ticket.DecisionID != "" {
		header[x.edge.headers.decision] = []string{x.ticket.DecisionID}
	}
	if x.ticket.RateLimit != "" {
		header["Ratelimit"] = []string{x.ticket.RateLimit}
		header["Ratelimit-Policy"] = []string{x.ticket.RateLimitPolicy}
	}
	x.WriteHeader(status)
	// The caller may be gone; there is nobody left to tell.
	_, _ = x.Write(buffer.Bytes())
	return nil
}

var (
	jsonType = []string{"application/json"}
	noStore  = []string{"no-store"}
)
