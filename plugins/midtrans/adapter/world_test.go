package adapter

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	testKey   = "SB-Mid-server-example"
	reference = "0123456789abcdef0123456789abcdef01234567"
	txID      = "01bf5e23-7183-4cfe-862c-58a3f6e8f0a2"
	aLink     = `{"type":"payment_link","amount":25000,"payer_email":"pembeli@example.com","expires_in":3600}`
	aQRIS     = `{"type":"qris","amount":25000,"payer_email":"pembeli@example.com"}`
	unknownTx = `{"status_code":"404","status_message":"Transaction doesn't exist.","id":"` + txID + `"}`
)

// today is when the stubs' answers are read.
var today = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

type reply struct {
	status int
	body   string
}

// stub is an upstream that answers by heart, by method and path, and remembers what it
// was asked.
type stub struct {
	url  string
	then map[string]reply // from the second time on that a path is asked for
	held time.Time        // no answer comes before
	mu   sync.Mutex
	seen []string // method, path, body
}

func newStub(t *testing.T, replies map[string]reply) *stub {
	t.Helper()
	s := &stub{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		if key, _, _ := r.BasicAuth(); key != testKey {
			t.Errorf("asked with the key %q", key)
		}
		asked := r.Method + " " + r.URL.Path
		s.mu.Lock()
		again := slices.ContainsFunc(s.seen, func(seen string) bool { return strings.HasPrefix(seen, asked+" ") })
		s.seen = append(s.seen, asked+" "+string(body))
		s.mu.Unlock()
		answer, ok := replies[asked]
		if later, changes := s.then[asked]; again && changes {
			answer = later
		}
		if !ok {
			answer = reply{http.StatusNotFound, unknownTx}
		}
		<-time.After(time.Until(s.held))
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *stub) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string{}, s.seen...)
}

func (s *stub) connection(t *testing.T) sdk.Connection {
	t.Helper()
	encoded, err := json.Marshal(map[string]string{"server_key": testKey, "api_url": s.url, "snap_url": s.url})
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Connection{MerchantID: "m1", Mode: "test", Version: 1, Credentials: encoded}
}

func newAdapter() *adapter { return &adapter{now: func() time.Time { return today }} }

func (s *stub) call(t *testing.T, body string) sdk.Call {
	t.Helper()
	return sdk.Call{
		Operation: "/payments/create", Connection: s.connection(t), Reference: reference, Amount: 25000,
		Body: json.RawMessage(body), SendBy: time.Now().Add(time.Minute),
	}
}

func (s *stub) lookup(t *testing.T, body, known string, sent time.Time) sdk.Lookup {
	t.Helper()
	return sdk.Lookup{
		Operation: "/payments/create", Connection: s.connection(t), Reference: reference, ProviderReference: known,
		Amount: 25000, Body: json.RawMessage(body), SentAt: sent,
	}
}

const statusPath = "GET /v2/" + reference + "/status"

// aTransaction is a status answer; extra members follow.
func aTransaction(code, status, extra string) string {
	return `{"status_code":"` + code + `","status_message":"Success, transaction is found","transaction_id":"` + txID + `",
"order_id":"` + reference + `","gross_amount":"25000.00","currency":"IDR","payment_type":"qris","transaction_time":"2026-11-20 17:00:00",
"transaction_status":"` + status + `"` + extra + `}`
}
