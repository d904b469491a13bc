package sandbox

import (
	"context"
	"errors"
	"net/http"
)

// Orderer is an [Upstream] with control orders of its own.
type Orderer interface {
	Orders() []Order
}

// Order is a control order that only one simulator has, served as
// POST /_sandbox/<Name>.
type Order struct {
	Name   string `json:"name"`
	Effect string `json:"effect"`

	serve func(*Env, http.ResponseWriter, *http.Request)
}

// NewOrder makes an order whose body is one JSON object of type B and whose
// answer is what do returns. [ErrUnknown] is answered with 404, every other
// error with 400. Webhooks that the order makes due are tried before it is
// answered, as for a payment by hand.
func NewOrder[B any](name, effect string, do func(B) (any, error)) Order {
	return Order{name, effect, func(e *Env, w http.ResponseWriter, r *http.Request) {
		var body B
		if !readOrder(w, r, &body) {
			return
		}
		answer, err := do(body)
		switch {
		case errors.Is(err, ErrUnknown):
			writeError(w, http.StatusNotFound, err.Error())
		case err != nil:
			writeError(w, http.StatusBadRequest, err.Error())
		default:
			heard, cancel := context.WithTimeout(r.Context(), payHeard)
			defer cancel()
			e.Webhooks.Tried(heard)
			writeJSON(w, http.StatusOK, answer)
		}
	}}
}
