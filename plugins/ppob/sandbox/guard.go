package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// maxBody is the largest request.
const maxBody = 1 << 20

// request is the union of what all calls may carry.
type request struct {
	Command  string        `json:"cmd"`
	Commands string        `json:"commands"`
	Username string        `json:"username"`
	Sign     string        `json:"sign"`
	SKU      string        `json:"buyer_sku_code"`
	Customer string        `json:"customer_no"`
	Ref      string        `json:"ref_id"`
	Testing  bool          `json:"testing"`
	MaxPrice *money.Amount `json:"max_price"`
	HookURL  string        `json:"cb_url"`
	AllowDot bool          `json:"allow_dot"`
	Amount   *money.Amount `json:"amount"`
	// Year is taken as a string or a number.
	Year     json.RawMessage `json:"year"`
	Code     string          `json:"code"`
	Category string          `json:"category"`
	Brand    string          `json:"brand"`
	Type     string          `json:"type"`
}

// call is a request whose signature is right.
type call struct {
	request
	account kit.AccountID
}

type callKey struct{}

// operation is one thing that the API does: what is signed beside the key,
// and how it is answered.
type operation struct {
	signed  func(request) string
	handler http.Handler
}

// operation makes one whose faults can be ordered.
func (s *Simulator) operation(name string, movesMoney bool, signed func(request) string, do func(call) (any, error)) operation {
	return operation{signed, s.env.Faults.Wrap(name, movesMoney, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _ := r.Context().Value(callKey{}).(call)
		data, err := do(c)
		if err != nil {
			fail(w, c.request, err)
			return
		}
		answer(w, http.StatusOK, data)
	}))}
}

// guard reads a request, finds the operation it asks for and who signed it.
func (s *Simulator) guard(choose func(request) (operation, bool)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q request
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err == nil {
			err = json.Unmarshal(data, &q)
		}
		if err != nil {
			fail(w, q, refuse(rcPayload))
			return
		}
		op, ok := choose(q)
		if !ok {
			fail(w, q, refuseBecause(rcPayload, "Perintah tidak dikenal"))
			return
		}
		id, err := s.authenticate(q.Username, q.Sign, op.signed(q))
		if err != nil {
			fail(w, q, err)
			return
		}
		r.Body = http.NoBody // it is read; a fault must not read it again
		op.handler.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, call{q, id})))
	})
}

// refused is the answer to a call that did nothing.
type refused struct {
	Ref      string `json:"ref_id,omitempty"`
	Customer string `json:"customer_no,omitempty"`
	SKU      string `json:"buyer_sku_code,omitempty"`
	Message  string `json:"message"`
	Status   status `json:"status"`
	Code     rc     `json:"rc"`
}

// fail renders an error; what is not the upstream's own is a 500 without data.
func fail(w http.ResponseWriter, q request, err error) {
	var no *refusal
	if !errors.As(err, &no) {
		serverError(w, nil)
		return
	}
	answer(w, http.StatusBadRequest, refused{q.Ref, q.Customer, q.SKU, no.Error(), failed, no.code})
}

// serverError is how the upstream answers when it is broken: without a code.
func serverError(w http.ResponseWriter, _ *http.Request) {
	write(w, http.StatusInternalServerError, map[string]string{"message": "Server Error"})
}

func answer(w http.ResponseWriter, code int, data any) {
	write(w, code, map[string]any{"data": data})
}

func write(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// The caller may be gone; nobody is left to answer.
	_ = json.NewEncoder(w).Encode(body)
}
