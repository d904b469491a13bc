package lifecycle

import (
	"encoding/json"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestUnknownOutcomeSaysNothing: an outcome that this version does not know is no acceptance, also beside sound data.
func TestUnknownOutcomeSaysNothing(t *testing.T) {
	t.Parallel()
	op := telling(t)
	l := New(Dependencies{})
	for _, outcome := range []sdk.Outcome{-1, sdk.NotSent + 1, 99} {
		f := l.factOfCall(op, movement.Movement{Amount: 10_000}, sdk.Result{Outcome: outcome, Data: json.RawMessage(`{"payment_url":"https://pay.example/1"}`)})
		if f.Says != movement.SaysNothing || f.Offers || len(f.Data) > 0 {
			t.Errorf("outcome %d says %v with %s", outcome, f.Says, f.Data)
		}
	}
}
