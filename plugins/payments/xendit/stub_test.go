package xendit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	testKey   = "xnd_development_example"
	testToken = "token-of-the-account"
	reference = "gb-0001"
	invoiceID = "63cc01390d8fc0b926efa2bb"
	qrID      = "qr_61cb3576-3a25-4d35-8d15-0e8e3bdba4f2"
)

// today is when the stubs' answers are read.
var today = time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)

// reply is one answer of a stub.
type reply struct {
	status int
	body   string
}

type seen struct {
	method, uri, body string
	header            http.Header
}

// stub is an upstream that answers by heart, by method and URI, and remembers
// what it was asked.
type stub struct {
	url  string
	mu   sync.Mutex
	seen []seen
}

// again is added to what is answered otherwise from the second time on.
const again = " again"

func newStub(t *testing.T, replies map[string]reply) *stub {
	t.Helper()
	s := &stub{}
	s.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		s.mu.Lock()
		before := slices.ContainsFunc(s.seen, func(b seen) bool { return b.method == r.Method && b.uri == r.RequestURI })
		s.seen = append(s.seen, seen{r.Method, r.RequestURI, string(body), r.Header.Clone()})
		s.mu.Unlock()
		answer, ok := replies[r.Method+" "+r.RequestURI]
		if later, other := replies[r.Method+" "+r.RequestURI+again]; before && other {
			answer = later
		}
		if !ok {
			answer = reply{http.StatusNotFound, `{"error_code":"DATA_NOT_FOUND","message":"nothing here"}`}
		}
		w.Header().Set("Request-Id", "req-1")
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	})
	return s
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// asked returns the requests so far as "METHOD uri".
func (s *stub) asked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []string{}
	for _, r := range s.seen {
		list = append(list, r.method+" "+r.uri)
	}
	return list
}

func (s *stub) only(t *testing.T) seen {
	t.Helper()
	return s.last(t, 1)
}

// last is the last one of so many requests.
func (s *stub) last(t *testing.T, of int) seen {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seen) != of {
		t.Fatalf("the upstream got %d requests, want %d", len(s.seen), of)
	}
	return s.seen[of-1]
}

func newAdapter() *adapter { return &adapter{now: func() time.Time { return today }} }

// connect makes a connection with the test key. Settings come in pairs.
func connect(t *testing.T, base string, settings ...string) sdk.Connection {
	t.Helper()
	credentials := map[string]string{"secret_key": testKey, "callback_token": testToken, "base_url": base}
	for i := 0; i+1 < len(settings); i += 2 {
		credentials[settings[i]] = settings[i+1]
	}
	encoded, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Connection{MerchantID: "m1", Mode: "test", Version: 1, Credentials: encoded}
}

func createCall(c sdk.Connection, body string) sdk.Call {
	return sdk.Call{
		Operation: "/payments/create", Connection: c, Reference: reference, Amount: 100000,
		Body: json.RawMessage(body), SendBy: time.Now().Add(time.Minute),
	}
}

func lookupOf(c sdk.Connection, body, providerReference string) sdk.Lookup {
	return sdk.Lookup{
		Operation: "/payments/create", Connection: c, Reference: reference,
		ProviderReference: providerReference, Amount: 100000, Body: json.RawMessage(body),
	}
}

// anInvoice is the recorded answer with the status and the extra members given.
func anInvoice(status, extra string) string {
	return `{"id":"` + invoiceID + `","external_id":"` + reference + `","user_id":"593f4ed1c3d3bb7f39733d83",
"status":"` + status + `","merchant_name":"Toko Contoh","amount":100000,"currency":"IDR","payer_email":"pembeli@example.com",
"expiry_date":"2026-11-21T10:00:00.622Z","invoice_url":"https://checkout-staging.xendit.co/web/` + invoiceID + `",
"available_qr_codes":[{"qr_code_type":"QRIS"}],"should_exclude_credit_card":false,
"created":"2026-11-20T10:00:00.622Z","updated":"2026-11-20T10:00:00.622Z"` + extra + `}`
}

const mockQR = "mock-QR-string-use-simulate-payment-to-test-flow"

// aQR is a QR code of the second generation.
func aQR(status, extra string) string {
	return `{"id":"` + qrID + `","reference_id":"` + reference + `","business_id":"593f4ed1c3d3bb7f39733d83","type":"DYNAMIC",
"currency":"IDR","amount":100000,"channel_code":"ID_DANA","status":"` + status + `","qr_string":"` + mockQR + `",
"created":"2026-11-20T10:00:00Z","updated":"2026-11-20T10:00:00Z","expires_at":"2026-11-20T10:30:00Z"` + extra + `}`
}

// anOldQR is the same code as the first generation tells it.
func anOldQR() string {
	return `{"id":"` + qrID + `","external_id":"` + reference + `","amount":100000,"type":"DYNAMIC","status":"ACTIVE","qr_string":"` + mockQR + `"}`
}
