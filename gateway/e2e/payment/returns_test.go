package payment_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// backed is what a merchant reads of a payment whose money went back.
type backed struct {
	ExternalID string `json:"external_id"`
	Status     string `json:"status"`
	Paid       int64  `json:"paid_amount"`
	Returned   int64  `json:"returned_amount"`
	ReturnedAt string `json:"returned_at"`
	Return     *struct {
		ID       string `json:"id"`
		Sort     string `json:"sort"`
		Amount   int64  `json:"amount"`
		UndoneAt string `json:"undone_at"`
	} `json:"return"`
}

// checkReturns: what a provider gives back is told, a part and the rest, and that it came
// again; the status follows the money.
func checkReturns(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	made := s.Create(t, harness.Fields{"amount": 25000})
	p.Pay(t, harness.Fields{"url": made.CheckoutURL})
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	shown, err := p.MovementOf(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	back := func(wanted harness.Fields) string {
		var done struct{ ID string }
		wanted["reference"], wanted["sort"] = shown.UpstreamReference, "refund"
		if status := p.Sandbox(t, "/providers/payments/return", wanted, &done); status != http.StatusOK {
			t.Fatalf("return %v: %d", wanted, status)
		}
		return done.ID
	}
	stands := func(status string, returned int64) {
		t.Helper()
		var last backed
		harness.Await(t, harness.PaidWithin, "what went back", func() bool {
			a := s.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID})
			last = backed{}
			if err := json.Unmarshal(a.Data, &last); err != nil {
				t.Fatal(err)
			}
			return last.Returned == returned && last.Status == status
		})
		if last.Paid != 25000 || (last.ReturnedAt != "") != (status == "FAILED") {
			t.Errorf("the status is %+v", last)
		}
	}
	back(harness.Fields{"amount": 10000})
	stands("PAID", 10000)
	rest := back(harness.Fields{})
	stands("FAILED", 25000)
	back(harness.Fields{"id": rest})
	stands("PAID", 10000)

	var told []string
	for _, e := range eventsOf(t, s, made.ExternalID) {
		if e.Event == "payments.returned" {
			told = append(told, e.Data.Status)
			if r := e.Data.Return; r == nil || r.Sort != "refund" || r.ID == "" || (r.UndoneAt != "") != (len(told) == 3) {
				t.Errorf("event %d tells %+v", len(told), r)
			}
		}
	}
	if len(told) != 3 || told[0] != "PAID" || told[1] != "FAILED" || told[2] != "PAID" {
		t.Errorf("events told %q", told)
	}
	p.WantException(t, "returned", s.MerchantID, "15000")
}

type toldEvent struct {
	Event string `json:"event"`
	Data  backed `json:"data"`
}

// eventsOf are the events of a payment, once the last of them can be listed.
func eventsOf(t *testing.T, s harness.Shop, reference string) (events []toldEvent) {
	t.Helper()
	harness.Await(t, harness.PaidWithin, "the events", func() bool {
		events = nil
		var listed []struct{ Body json.RawMessage }
		a := s.Ask(t, "/events", harness.Fields{"limit": 100})
		if err := json.Unmarshal(a.Data, &listed); err != nil {
			t.Fatalf("%s: %v", a, err)
		}
		for _, l := range listed {
			var e toldEvent
			if err := json.Unmarshal(l.Body, &e); err != nil {
				t.Fatal(err)
			}
			if e.Data.ExternalID == reference {
				events = append(events, e)
			}
		}
		return len(events) >= 4 // its end, and three returns
	})
	return events
}
