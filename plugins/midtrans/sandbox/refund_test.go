package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	refundPath = "/v2/O-1/refund"
	directPath = "/v2/O-1/refund/online/direct"
)

// status is a transaction, as the status tells it.
type status struct {
	Code    string `json:"status_code"`
	Status  string `json:"transaction_status"`
	Type    string `json:"payment_type"`
	Amount  string `json:"refund_amount"`
	Key     string `json:"refund_key"`
	Refunds []struct {
		Key       string `json:"refund_key"`
		Amount    string `json:"refund_amount"`
		Reason    string `json:"reason"`
		Method    string `json:"refund_method"`
		Confirmed string `json:"bank_confirmed_at"`
	} `json:"refunds"`
}

func (s shop) status() status {
	s.Helper()
	_, body := s.ask(http.MethodGet, "/v2/O-1/status", "", "")
	return s.read(body)
}

func (s shop) read(body string) (told status) {
	s.Helper()
	if err := json.Unmarshal([]byte(body), &told); err != nil {
		s.Fatalf("%v in %s", err, body)
	}
	return told
}

// refunds asks for a refund, and wants the upstream's own code.
func (s shop) refunds(path, key string, amount int, want string) status {
	s.Helper()
	_, body := s.ask(http.MethodPost, path, "application/json", fmt.Sprintf(`{"refund_key":%q,"amount":%d,"reason":"broken"}`, key, amount))
	told := s.read(body)
	if told.Code != want {
		s.Errorf("%s of %d as %s: %s, want %s", path, amount, key, body, want)
	}
	return told
}

// order gives the simulator one of its own orders.
func (s shop) order(name, body string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), http.MethodPost, s.url+"/_sandbox/"+name, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer open")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		s.Fatalf("%s %s: %d", name, body, answer.StatusCode)
	}
}

// paidBy is a link that was paid by some means.
func paidBy(t *testing.T, by string) shop {
	t.Helper()
	s := open(t, "/snap/v1/transactions", aLink)
	s.order("choose", fmt.Sprintf(`{"url":%q,"payment_type":%q}`, s.page, by))
	s.press("pay")
	s.env.Webhooks.Tried(t.Context())
	for len(s.told) > 0 {
		<-s.told
	}
	return s
}

func TestRefundsAreMadeOncePerKeyAndNeverPastTheAmount(t *testing.T) {
	t.Parallel()
	for _, path := range []string{refundPath, directPath} {
		s := paidBy(t, "qris")
		s.refunds(path, "r-1", 25001, "414")
		s.refunds(path, "r-1", -1, "400")
		if told := s.refunds(path, "r-1", 10000, "200"); told.Status != "partial_refund" || told.Key != "r-1" || told.Amount != "10000.00" || told.Refunds != nil {
			t.Errorf("a part: %+v", told)
		}
		s.refunds(path, "r-1", 10000, "406")
		s.refunds(path, "r-2", 15001, "414")
		if told := s.refunds(path, "r-2", 15000, "200"); told.Status != "refund" || told.Amount != "25000.00" {
			t.Errorf("the rest: %+v", told)
		}
		s.refunds(path, "r-2", 15000, "406")
		s.refunds(path, "r-3", 1, "412")
		s.refunds(path, "r/4", 1, "400")
		told := s.status()
		if len(told.Refunds) != 2 || told.Amount != "25000.00" || told.Status != "refund" {
			t.Fatalf("%+v", told)
		}
		if first := told.Refunds[0]; first.Key != "r-1" || first.Amount != "10000.00" || first.Reason != "broken" || first.Method != "online" || first.Confirmed == "" {
			t.Errorf("%+v", first)
		}
	}
}

// TestRefundsNotify: each refund that is made is told, and no other.
func TestRefundsNotify(t *testing.T) {
	t.Parallel()
	s := paidBy(t, "gopay")
	s.refunds(directPath, "r-1", 10000, "200")
	s.refunds(directPath, "r-1", 10000, "406")
	s.refunds(directPath, "r-2", 10116, "202")
	s.env.Webhooks.Tried(t.Context())
	if len(s.told) != 1 {
		t.Errorf("%d notifications, want 1", len(s.told))
	}
}

func TestRefundOfAllThatIsLeftTakesNoAmount(t *testing.T) {
	t.Parallel()
	s := paidBy(t, "shopeepay")
	if _, body := s.ask(http.MethodPost, directPath, "application/json", `{}`); s.read(body).Status != "refund" || s.read(body).Key == "" {
		t.Errorf("answered %s", body)
	}
}

func TestBankTransfersAreNotRefunded(t *testing.T) {
	t.Parallel()
	s := paidBy(t, "bank_transfer")
	s.refunds(refundPath, "r-1", 1000, "412")
	s.refunds(directPath, "r-1", 1000, "412")
	s.is("settlement")
}

func TestUnpaidOrdersAreNotRefunded(t *testing.T) {
	t.Parallel()
	s := open(t, "/v2/charge", aCharge)
	s.refunds(directPath, "r-1", 1000, "412")
	s.is("pending")
}

// TestCardsAreRefundedOnceTheySettle, and are done once the bank has confirmed it.
func TestCardsAreRefundedOnceTheySettle(t *testing.T) {
	t.Parallel()
	s := paidBy(t, "credit_card")
	s.is("capture")
	s.refunds(refundPath, "r-1", 1000, "412")
	s.order("settle", `{"reference":"O-1"}`)
	s.is("settlement")
	s.refunds(refundPath, "r-1", 1000, "200")
	if told := s.status(); told.Type != "credit_card" || len(told.Refunds) != 1 || told.Refunds[0].Method != "offline" || told.Refunds[0].Confirmed != "" {
		t.Errorf("under way: %+v", told)
	}
	s.order("confirm", `{"reference":"O-1"}`)
	if told := s.status(); told.Refunds[0].Confirmed == "" || told.Status != "partial_refund" {
		t.Errorf("confirmed: %+v", told)
	}
}

func TestDeniedRefundChangesNothing(t *testing.T) {
	t.Parallel()
	s := paidBy(t, "qris")
	if told := s.refunds(directPath, "r-1", 10116, "202"); told.Amount != "0.00" || told.Status != "settlement" {
		t.Errorf("denied: %+v", told)
	}
	s.is("settlement")
	if told := s.status(); len(told.Refunds) != 0 {
		t.Errorf("%+v", told)
	}
}
