package sandbox

import (
	"context"
	"errors"
	"net/http"

	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Returner is an [Upstream] of which the money of a payment can go back.
type Returner interface {
	// Return has money go back as the upstream would, and tells it as that does. It
	// returns ErrUnknown or a *NotPayable where it can't.
	Return(r ReturnRequest) (Returned, error)
}

// ReturnRequest says what goes back. With an ID it is the return that is undone.
type ReturnRequest struct {
	Reference string       `json:"reference"` // of the payment, as the upstream was given it
	Amount    money.Amount `json:"amount"`    // 0 is all that is left
	Sort      string       `json:"sort"`      // refund, void, chargeback or reversal
	ID        string       `json:"id"`
}

// Returned is what went back.
type Returned struct {
	ID     string       `json:"id"` // the upstream's, "" where it has none
	Amount money.Amount `json:"amount"`
}

var returnOrder = Order{
	Name:   "return",
	Effect: `{"reference":"...","sort":"refund","amount":5000}: money of the payment that the upstream knows by this reference goes back, all that is left without an amount; with the "id" of a return that one is undone`,
}

func (e *Env) giveBack(up Returner, w http.ResponseWriter, r *http.Request) {
	var request ReturnRequest
	if !readOrder(w, r, &request) {
		return
	}
	returned, err := up.Return(request)
	var refusal *NotPayable
	switch {
	case errors.Is(err, ErrUnknown):
		writeError(w, http.StatusNotFound, err.Error())
	case errors.As(err, &refusal):
		writeError(w, http.StatusConflict, refusal.Reason)
	case err != nil:
		writeError(w, http.StatusInternalServerError, err.Error())
	default:
		heard, cancel := context.WithTimeout(r.Context(), payHeard)
		defer cancel()
		e.Webhooks.Tried(heard)
		writeJSON(w, http.StatusOK, returned)
	}
}
