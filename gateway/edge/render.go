package edge

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

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

// succeed renders an answer. One that can't be encoded is INTERNAL.
func (x *exchange) succeed(a lifecycle.Answer) {
	err := x.envelope(http.StatusOK, success{Success: true, Message: a.Message, Status: a.Status, Data: a.Data})
	if err != nil {
		x.fail(x.truthful(fmt.Errorf("encode the answer: %w", err)))
	}
}

// fail answers with an error: the only place of this package that does.
func (x *exchange) fail(f *fault.Error) {
	x.code = string(f.Code)
	x.logCause(f)
	out := f.Envelope(x.id)
	if wait := f.RetrySeconds(x.edge.Now()); wait > 0 {
		x.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if f.Code == fault.AuthFailed {
		x.Header().Set("WWW-Authenticate", "Bearer")
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
