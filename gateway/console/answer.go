package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/jsonbody"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// call is one request to the admin API, after the operator is known.
type call struct {
	request  *http.Request
	id       string
	operator Identity
	now      time.Time
}

func (c *Console) call(w http.ResponseWriter, r *http.Request) *call {
	return &call{request: r, id: w.Header().Get(requestID), operator: identityOf(r), now: c.deps.Now()}
}

type success struct {
	Success bool `json:"success"`
	Data    any  `json:"data"`
}

// fail answers with an error: the only place of this package that does.
func (c *Console) fail(w http.ResponseWriter, r *http.Request, id string, err error) {
	f := fault.From(unsealed(err, "Nothing was stored."))
	if f.Code == fault.Internal {
		c.log.ErrorContext(r.Context(), "console request failed", "request_id", id, "method", r.Method, "route", r.Pattern, "cause", err)
	}
	if wait := f.RetrySeconds(c.deps.Now()); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(wait))
	}
	if f.Code == fault.AuthFailed {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	write(w, f.Status(), f.Envelope(id))
}

// unsealed says of an error that it is the keyset's fault, where it is, and what
// became of the request. Others stay what they are.
func unsealed(err error, became string) error {
	if _, known := errors.AsType[*fault.Error](err); known || !errors.Is(err, tenants.ErrKeysetUnread) {
		return err
	}
	return fault.New(fault.Internal, "The keyset can't be read at the moment, so that nothing can be sealed. "+became+" The gateway's log says why.").Because(err)
}

func write(w http.ResponseWriter, status int, document any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	// The caller may be gone; there is nobody left to tell.
	_ = encoder.Encode(document)
}

// decode reads a request's body strictly; no body is an empty object.
func decode(x *call, into any) error {
	content, err := readBody(x)
	if err != nil || len(content) == 0 {
		return err // what a field requires is judged later
	}
	return jsonbody.Decode(content, into)
}

func readBody(x *call) ([]byte, error) {
	content, err := io.ReadAll(x.request.Body)
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, fault.Newf(fault.PayloadTooLarge, "The body is larger than %d KiB.", tooLarge.Limit>>10)
	}
	if err != nil {
		return nil, fault.New(fault.InvalidRequest, "The body could not be read.").Because(err)
	}
	return content, nil
}
