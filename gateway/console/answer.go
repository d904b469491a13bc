package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	jsonx "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// maxBody is what an operator may send; the same as a merchant.
const maxBody = 64 << 10

// call is one request to the admin API, after the operator is known.
type call struct {
	request  *http.Request
	id       string
	operator string
	now      time.Time
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

// decode reads a request's body strictly: one JSON object, no name twice, none
// that is unknown. An error tells the place and never what stands there.
func decode(x *call, into any) error {
	content, err := io.ReadAll(x.request.Body)
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return fault.New(fault.PayloadTooLarge, "The body is larger than 64 KiB.")
		}
		return fault.New(fault.InvalidRequest, "The body could not be read.").Because(err)
	}
	if len(content) == 0 {
		content = []byte("{}") // what a field requires is judged later
	}
	return unreadable(jsonx.Unmarshal(content, into, jsonx.RejectUnknownMembers(true)))
}

func unreadable(err error) error {
	if err == nil {
		return nil
	}
	if syntax, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return fault.Invalid(field(syntax.JSONPointer), "is given twice")
		}
		return fault.Newf(fault.InvalidRequest, "The body is not valid JSON; the fault is at byte %d.", syntax.ByteOffset)
	}
	semantic, ok := errors.AsType[*jsonx.SemanticError](err)
	if !ok {
		return fault.New(fault.InvalidRequest, "The body is not a JSON object.")
	}
	name := field(semantic.JSONPointer)
	if wrong, ok := errors.AsType[money.Error](err); ok {
		return fault.Invalid(name, wrong.Error())
	}
	switch {
	case errors.Is(err, jsonx.ErrUnknownName):
		return fault.Invalid(name, "is not a known field")
	case name == "":
		return fault.New(fault.InvalidRequest, "The body is not a JSON object.")
	default:
		return fault.Invalid(name, "has the wrong type")
	}
}

func field(pointer jsontext.Pointer) string {
	var names []string
	for name := range pointer.Tokens() {
		names = append(names, name)
	}
	return strings.Join(names, ".")
}
