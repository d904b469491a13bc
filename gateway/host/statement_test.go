package host

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

func statementThat(do string) sdk.Statement {
	return sdk.Statement{Connection: accountThat(do), Cursor: "c", Limit: 10}
}

func TestStatements(t *testing.T) {
	t.Parallel()
	observed := make(chan Observation, 16)
	h := startHost(t, calm, Config{Specs: []Spec{testSpec("one")}, Observe: func(o Observation) { observed <- o }})
	for do, c := range map[string]struct {
		timeout time.Duration
		outcome string
		blame   sdk.Blame
	}{
		"accept": {outcome: "read"},
		"fault":  {outcome: "unread", blame: sdk.BlameUpstream},
		"hang":   {timeout: heedable, outcome: "unread", blame: sdk.BlameUpstream},
		"deaf":   {timeout: 100 * time.Millisecond, outcome: "unread"},
	} {
		if c.timeout == 0 {
			c.timeout = patience
		}
		r := h.Statement(t.Context(), "one", statementThat(do), c.timeout)
		if r.Known != (c.outcome == "read") || r.Blame != c.blame || r.Known != (r.Cursor == "c+") {
			t.Errorf("%s: got %+v", do, r)
		}
		if o := <-observed; o.Provider != "one" || o.Mode != "test" || o.Method != "statement" || o.Outcome != c.outcome {
			t.Errorf("%s: observed %+v", do, o)
		}
	}
	if r := h.Statement(t.Context(), "none", statementThat("accept"), 0); r.Known || r.Detail == "" {
		t.Errorf("of nobody: %+v", r)
	}
}

// TestBooksNobodyCanReadStopNoCalls: one account's directory is nobody else's.
func TestBooksNobodyCanReadStopNoCalls(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	for range 2 * breakerMinimum {
		h.Statement(t.Context(), "one", statementThat("fault"), patience)
	}
	if err := h.Available(ofOne, callTo("").Connection); err != nil {
		t.Errorf("calls are stopped: %v", err)
	}
}
