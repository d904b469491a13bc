package payment_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// refunded is what a merchant reads of a refund.
type refunded struct {
	RefundID   string `json:"refund_id"`
	ExternalID string `json:"external_id"`
	Status     string `json:"status"`
	Amount     int64  `json:"amount"`
	Reason     string `json:"reason"`
}

// checkRefunds: a merchant gives a payment back by parts, an operator the rest. Nothing more
// goes back than has come, and nobody else is bothered.
func checkRefunds(t *testing.T, p *harness.Program) {
	s := newPayee(t, p, "test")
	made := s.Create(t, harness.Fields{"amount": 25000})
	refund := func(id string, amount int64) harness.Answer {
		t.Helper()
		wanted := harness.Fields{"external_id": made.ExternalID, "refund_id": id, "reason": "sold out"}
		if amount > 0 {
			wanted["amount"] = amount
		}
		return s.Ask(t, "/payments/refund", wanted)
	}
	if a := refund("R/1", 10000); a.Code != "INVALID_REQUEST" || a.HTTP != http.StatusBadRequest {
		t.Errorf("of what is not paid: %s", a)
	}
	p.Pay(t, harness.Fields{"url": made.CheckoutURL})
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)

	first := refund("R/1", 10000)
	stands := func(id, status string, amount int64) {
		t.Helper()
		var last refunded
		harness.Await(t, harness.PaidWithin, "the refund", func() bool {
			if err := json.Unmarshal(s.Ask(t, "/payments/refund/status", harness.Fields{"refund_id": id}).Data, &last); err != nil {
				t.Fatal(err)
			}
			return last.Status == status
		})
		if last.Amount != amount || last.ExternalID != made.ExternalID || last.Reason != "sold out" {
			t.Errorf("the status is %+v", last)
		}
	}
	stands("R/1", "SUCCEEDED", 10000)
	if again := refund("R/1", 10000); !again.Replayed() || string(again.Data) != string(first.Data) {
		t.Errorf("the same again: %s, first %s", again, first)
	}
	if a := refund("R/2", 15001); a.Code != "INVALID_REQUEST" {
		t.Errorf("more than is left: %s", a)
	}
	var done struct{ Answer refunded }
	p.MustRun(t, "", &done, "payment", "refund", shownID(t, p, made), "--reason", "sold out", "--refund-id", "R/3", "--yes")
	if done.Answer.Amount != 15000 {
		t.Errorf("the operator's refund is %+v", done.Answer)
	}
	stands("R/3", "SUCCEEDED", 15000)
	var last backed
	harness.Await(t, harness.PaidWithin, "what went back", func() bool {
		last = backed{}
		if err := json.Unmarshal(s.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID}).Data, &last); err != nil {
			t.Fatal(err)
		}
		return last.Returned == 25000
	})
	if last.Status != "FAILED" || last.ReturnedAt == "" {
		t.Errorf("all went back, and the payment is %+v", last)
	}
	if a := refund("R/4", 0); a.Code != "INVALID_REQUEST" {
		t.Errorf("of nothing: %s", a)
	}
	checkRefundsTold(t, p, s, made)
}

// shownID is the gateway's own id of a payment.
func shownID(t *testing.T, p *harness.Program, made harness.Payment) string {
	t.Helper()
	shown, err := p.MovementOf(t.Context(), made)
	if err != nil {
		t.Fatal(err)
	}
	return shown.ID
}

// checkRefundsTold checks the list and the events of two refunds of a payment, and that
// they are no exceptions.
func checkRefundsTold(t *testing.T, p *harness.Program, s harness.Shop, made harness.Payment) {
	t.Helper()
	var listed []refunded
	if err := json.Unmarshal(s.Ask(t, "/payments/refund/list", harness.Fields{"status": "SUCCEEDED"}).Data, &listed); err != nil || len(listed) != 2 || listed[0].RefundID != "R/3" {
		t.Errorf("listed %+v: %v", listed, err)
	}
	told := map[string]int{}
	harness.Await(t, harness.PaidWithin, "the events", func() bool {
		clear(told)
		var events []struct {
			Body struct {
				Event string
				Data  struct {
					Status string
					Return *struct {
						RefundID string `json:"refund_id"`
						Amount   int64
					}
				}
			}
		}
		if err := json.Unmarshal(s.Ask(t, "/events", harness.Fields{"limit": 100}).Data, &events); err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			what := e.Body.Event + " " + e.Body.Data.Status
			if r := e.Body.Data.Return; r != nil {
				what += " " + r.RefundID + " " + strconv.FormatInt(r.Amount, 10)
			}
			told[what]++
		}
		return len(events) >= 5
	})
	for _, once := range []string{
		"payments.status_update PAID", "payments.returned PAID R/1 10000", "payments.returned FAILED R/3 15000", "refund.status_update SUCCEEDED",
	} {
		if n := told[once]; n != 1 && once != "refund.status_update SUCCEEDED" || once == "refund.status_update SUCCEEDED" && n != 2 {
			t.Errorf("%q was told %d times: %v", once, n, told)
		}
	}
	if shown, err := p.MovementOf(t.Context(), made); err != nil || len(shown.Exceptions) != 0 {
		t.Errorf("exceptions of the payment: %+v, %v", shown.Exceptions, err)
	}
}
