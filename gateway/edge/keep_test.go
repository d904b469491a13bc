package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/requestlog"
	"github.com/seed-f006e74d/gerbang/policy"
)

// allCalls keeps every call.
type allCalls []requestlog.Call

func (a *allCalls) Keep(c requestlog.Call) { *a = append(*a, c) }

// TestCallsAreKept: every call of an authenticated merchant is, as it was answered, and nobody else's.
func TestCallsAreKept(t *testing.T) {
	t.Parallel()
	h, calls := build(t), &allCalls{}
	h.kept = calls
	var err error
	if h.Edge, err = edge.New(edge.Config{}, h.dependencies(), snapshot(t)); err != nil {
		t.Fatal(err)
	}
	last := func(what string) requestlog.Call {
		t.Helper()
		if len(*calls) != 1 {
			t.Fatalf("%s: %d calls are kept", what, len(*calls))
		}
		c := (*calls)[0]
		*calls = nil
		return c
	}
	ticket := admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-1"}}
	h.admit = func() (admission.Ticket, error) { return ticket, nil }
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{Data: map[string]any{"external_id": "INV-1"}, Replayed: true}, nil
	}
	body := h.right(`,"external_id":"INV-1"`)
	got := h.create(t, body, header{"User-Agent", "gerbang-go/1"})
	c := last("a success")
	want := requestlog.Entry{
		ID: got.Header.Get("X-Request-Id"), At: noon, Ended: c.Ended, KeyID: c.KeyID, KeyName: c.KeyName, Method: "POST", Operation: "/payments/create", Agent: "gerbang-go/1",
		Status: http.StatusOK, Code: "OK", Reference: "INV-1", DecisionID: "d-1", Replayed: true, AskedBytes: len(body), AnsweredBytes: len(got.text),
	}
	if c.Entry != want || c.Owner != (requestlog.Owner{Merchant: string(h.merchant), Mode: "test"}) || string(c.Asked) != body || string(c.Answered) != got.text || c.From.String() != "192.0.2.1" || c.KeyID == "" {
		t.Errorf("kept %+v\nwant %+v", c, want)
	}

	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{}, fault.New(fault.ProviderRejected, "No.")
	}
	got = h.create(t, h.right(`,"external_id":"INV-2"`))
	if c := last("a failure"); c.Code != "PROVIDER_REJECTED" || c.Message != "No." || c.Sent != string(got.envelope.Sent) || c.Retry != string(got.envelope.Retry) || c.Status != got.StatusCode || string(c.Answered) != got.text {
		t.Errorf("kept %+v", c)
	}
	h.create(t, h.right(`,"amount":`))
	if c := last("no JSON"); c.Code != "INVALID_REQUEST" || c.AskedBytes == 0 {
		t.Errorf("kept %+v", c)
	}
	long := `,"description":"` + strings.Repeat("x", requestlog.MostBody) + `"`
	h.create(t, h.right(long))
	if c := last("a long body"); c.Asked != nil || c.AskedBytes != len(h.right(long)) {
		t.Errorf("%d bytes of %d are kept", len(c.Asked), c.AskedBytes)
	}
	h.create(t, strings.Replace(h.right(""), h.key, "nobody's", 1))
	h.send(t, http.MethodPost, "/nowhere", h.right(""))
	if len(*calls) != 0 {
		t.Errorf("calls of nobody are kept: %+v", *calls)
	}

	// Of successes those that the policy wants, of failures all.
	for unlogged, want := range map[float64]int{0: 400, 0.25: 350, 1: 200} {
		ticket.Limits.Unlogged = unlogged
		for i := range 400 {
			h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
				if i%2 == 0 {
					return lifecycle.Answer{}, fault.New(fault.ProviderRejected, "No.")
				}
				return lifecycle.Answer{Data: map[string]any{}}, nil
			}
			h.create(t, h.right(`,"external_id":"INV-3"`))
		}
		failed := 0
		for _, c := range *calls {
			if c.Failed() {
				failed++
			}
		}
		const most = 43 // seven standard deviations of 200 draws with a chance of a quarter
		if off := len(*calls) - want; failed != 200 || off != 0 && (unlogged != 0.25 || off > most || off < -most) {
			t.Errorf("%d calls are kept, %d of them failed, where %v of the successes are not wanted, want %d", len(*calls), failed, unlogged, want)
		}
		*calls = nil
	}
}
