package edge_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/admission"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/policy"
)

// counted is the ticket of what a quota counts.
var counted = admission.Ticket{Ticket: policy.Ticket{DecisionID: "d-4", Limits: policy.Limits{Quotas: []policy.Quota{{Name: "wallet2", Limit: 1}}}}}

// TestAReplayHoldsNoUnit has another caller come while a replay looks its movement
// up: the last unit is free for it.
func TestAReplayHoldsNoUnit(t *testing.T) {
	t.Parallel()
	h := build(t)
	left, other := int64(1), answer{}
	h.admit = func() (admission.Ticket, error) { return counted, nil }
	h.reserve = func(ticket admission.Ticket) (admission.Ticket, error) {
		if left == 0 {
			ticket.DecisionID = "d-over"
			return ticket, fault.New(fault.QuotaExceeded, "Over.")
		}
		left--
		ticket.Remaining = new(left)
		return ticket, nil
	}
	h.stored = func(r lifecycle.Request) (lifecycle.Answer, bool, error) {
		if r.Body["external_id"] != "INV-1" {
			return lifecycle.Answer{}, false, nil
		}
		other = h.create(t, h.right(`,"external_id":"INV-2"`))
		if h.remaining = new(int64(7)); *r.Left(t.Context()) != 7 {
			t.Error("the remaining quota is missing")
		}
		return lifecycle.Answer{Data: map[string]any{"remaining_quota": 7}, Replayed: true}, true, nil
	}
	got := h.create(t, h.right(`,"external_id":"INV-1"`))
	if other.StatusCode != http.StatusOK || len(h.requests) != 1 || h.requests[0].Body["external_id"] != "INV-2" || *h.requests[0].Remaining != 0 {
		t.Errorf("the other caller got %d %s, the engine ran %+v", other.StatusCode, other.text, h.requests)
	}
	if got.StatusCode != http.StatusOK || got.Header.Get("Idempotent-Replayed") != "true" ||
		got.Header.Get("X-Svc-Decision-Id") != "d-4" || !strings.Contains(got.text, `"remaining_quota":7`) {
		t.Errorf("the replay got %d %s %v", got.StatusCode, got.text, got.Header)
	}
	over := h.create(t, h.right(`,"external_id":"INV-3"`))
	over.wantFault(t, fault.QuotaExceeded)
	if over.Header.Get("X-Svc-Decision-Id") != "d-over" {
		t.Errorf("the refusal is another decision than the admission: %v", over.Header)
	}
	h.reserve = func(ticket admission.Ticket) (admission.Ticket, error) { return ticket, nil }
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
		return lifecycle.Answer{}, fault.New(fault.PolicyDenied, "Too much today.")
	}
	if beyond := h.create(t, h.right(`,"external_id":"INV-3"`)); beyond.Header.Get("X-Svc-Decision-Id") != "d-4-refused" {
		t.Errorf("what the policy refuses later is another decision: %v", beyond.Header)
	}
	if left != 0 || len(h.released) != 2 { // the replay, and what the policy refused later
		t.Errorf("%d left, released %d", left, len(h.released))
	}
}

// TestWhatIsLookedUpBeforeItIsCounted: a reference, where a quota counts it and
// money is moved. All else pays for no read.
func TestWhatIsLookedUpBeforeItIsCounted(t *testing.T) {
	t.Parallel()
	const create, status, reference = "/payments/create", "/payments/status", `,"external_id":"INV-1"`
	for name, c := range map[string]struct {
		path, more string
		ticket     admission.Ticket
		refusal    error
		want       string
	}{
		"counted":           {create, reference, counted, nil, "stored reserved run"},
		"without reference": {create, "", counted, nil, "reserved run"},
		"a read":            {status, reference, counted, nil, "reserved run"},
		"not counted":       {create, reference, admission.Ticket{}, nil, "run"},
		"used up":           {create, reference, counted, fault.New(fault.QuotaExceeded, "Over."), "stored reserved stored"},
	} {
		h := build(t)
		var did []string
		h.admit = func() (admission.Ticket, error) { return c.ticket, nil }
		h.stored = func(lifecycle.Request) (lifecycle.Answer, bool, error) {
			did = append(did, "stored")
			return lifecycle.Answer{}, false, nil
		}
		h.reserve = func(ticket admission.Ticket) (admission.Ticket, error) {
			did = append(did, "reserved")
			return ticket, c.refusal
		}
		h.run = func(lifecycle.Request) (lifecycle.Answer, error) {
			did = append(did, "run")
			return lifecycle.Answer{Data: map[string]any{}}, nil
		}
		h.send(t, http.MethodPost, c.path, h.right(c.more))
		if got := strings.Join(did, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
