package host

import (
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestWordsForOperatorsAreFit: whatever a hostile plugin tells operators, no answer and no
// breaker has a secret or a flood of it.
func TestWordsForOperatorsAreFit(t *testing.T) {
	t.Parallel()
	h := one(t, calm)
	const secret = "top-secret-key"
	body := []byte(`{"do":"detail","text":"` + secret + ` é` + strings.Repeat("é", maxText) + `"}`)
	with := callTo("detail").Connection
	with.Credentials = []byte(`{"do":"detail","text":"` + secret + `"}`)
	call := callTo("detail")
	call.Body, call.Connection = body, with
	quote := sdk.Quote{Operation: "/test/order", Connection: with, Body: body}
	lookup := sdk.Lookup{Operation: call.Operation, Connection: with, Body: body}
	verified := with
	verified.Credentials = []byte(`{"do":"detail","text":"another-secret"}`)
	said := map[string]string{
		"a call":         h.Call(t.Context(), ofOne, call, patience).Detail,
		"a quote":        h.Quote(t.Context(), ofOne, quote, patience).Detail,
		"a lookup":       h.Lookup(t.Context(), ofOne, lookup, patience).Detail,
		"a verification": h.Verify(t.Context(), "one", verified, patience).Detail,
		"a statement":    h.Statement(t.Context(), "one", sdk.Statement{Connection: with}, patience).Detail,
	}
	ack, err := h.Notify(t.Context(), "one", sdk.Notification{
		Connection: with, Header: http.Header{"X-Detail": {secret + strings.Repeat("x", 2*maxText)}},
	}, patience)
	if err != nil || len(ack.Updates) != 1 {
		t.Fatalf("%+v, %v", ack, err)
	}
	said["an acknowledgement"], said["a notification's update"] = ack.Detail, ack.Updates[0].Detail
	for n := 0; len(h.Outages()) == 0 && n < 2*breakerMinimum; n++ {
		h.Call(t.Context(), ofOne, call, patience)
	}
	for _, o := range h.Outages() {
		said["a breaker, "+o.Account] = o.Why
	}
	if len(said) < 8 {
		t.Errorf("no breaker has opened: %d texts", len(said))
	}
	for _, f := range h.Status()[0].Faults {
		said["a fault, "+f.At.Format(time.RFC3339Nano)] = f.Why
	}
	for what, text := range said {
		if strings.Contains(text, "secret") || !strings.HasPrefix(text, "[removed]") || len(text) > maxText || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes: %.60q", what, len(text), text)
		}
	}
}
