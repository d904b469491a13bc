package host

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func accountThat(do string) sdk.Connection {
	credentials, err := json.Marshal(order{Do: do})
	if err != nil {
		panic(err)
	}
	return sdk.Connection{MerchantID: "m", Mode: "test", Version: 7, Credentials: credentials}
}

func TestVerify(t *testing.T) {
	t.Parallel()
	observed := make(chan Observation, 16)
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one")}, Observe: func(o Observation) { observed <- o }})
	for do, c := range map[string]struct {
		timeout time.Duration
		outcome sdk.Outcome
		blame   sdk.Blame
	}{
		"accept": {outcome: sdk.Done},
		"refuse": {outcome: sdk.Refused},
		"fault":  {outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"hang":   {timeout: heedable, outcome: sdk.Unknown, blame: sdk.BlameUpstream},
		"deaf":   {timeout: 100 * time.Millisecond, outcome: sdk.Unknown},
	} {
		if c.timeout == 0 {
			c.timeout = patience
		}
		r := h.Verify(t.Context(), "one", accountThat(do), c.timeout)
		if r.Outcome != c.outcome || r.Blame != c.blame {
			t.Errorf("%s: got %+v, want outcome %d and blame %d", do, r, c.outcome, c.blame)
		}
		if o := <-observed; o.Provider != "one" || o.Mode != "test" || o.Method != "verify" || o.Outcome != c.outcome.String() {
			t.Errorf("%s: observed %+v", do, o)
		}
	}
	if r := h.Verify(t.Context(), "none", accountThat("accept"), 0); r.Outcome != sdk.NotSent || r.Detail == "" {
		t.Errorf("of nobody: %+v", r)
	}
}

// TestWrongAccountsOpenNoBreaker: many accounts that can't be reached, as of one
// operator with a wrong address, stop nobody else.
func TestWrongAccountsOpenNoBreaker(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for range 2 * breakerMinimum {
		h.Verify(t.Context(), "one", accountThat("fault"), patience)
	}
	if err := h.Available(ofOne, callTo("").Connection); err != nil {
		t.Errorf("after wrong accounts: %v", err)
	}
	for range breakerMinimum {
		h.Call(t.Context(), ofOne, callTo("fault"), patience)
	}
	if h.Available(ofOne, callTo("").Connection) == nil {
		t.Error("the breaker is still closed, so the above shows nothing")
	}
	if r := h.Verify(t.Context(), "one", accountThat("accept"), patience); r.Outcome != sdk.Done {
		t.Errorf("through an open breaker: %+v", r)
	}
}
