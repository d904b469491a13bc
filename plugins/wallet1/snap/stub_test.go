package snap

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

const (
	testSecret = "client-secret-123"
	reference  = "gb-0001"
	payer      = "6281100000001"
	receiver   = "6281388370001"
)

// today is when the adapter under test lives: in the night of Jakarta.
var today = time.Date(2026, 11, 20, 17, 30, 0, 0, time.UTC)

// keys are made once: it takes long.
var keys = sync.OnceValue(func() (pair struct{ ours, theirs *rsa.PrivateKey }) {
	var err error
	if pair.ours, err = rsa.GenerateKey(rand.Reader, 2048); err == nil {
		pair.theirs, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		panic(err) // there is no test to fail yet
	}
	return pair
})

func privatePEM(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}

func publicPEM(t *testing.T, key *rsa.PublicKey) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// reply is one answer of a stub.
type reply struct {
	status int
	body   string
}

// seen is one request that reached a stub.
type seen struct {
	path, body string
	header     http.Header
}

// member is a member of the request's body, as text.
func (s seen) member(t *testing.T, name string) string {
	t.Helper()
	var body map[string]json.RawMessage
	if err := json.Unmarshal([]byte(s.body), &body); err != nil {
		t.Fatalf("%s: %v in %s", s.path, err, s.body)
	}
	return strings.Trim(string(body[name]), `"`)
}

// stub is an upstream that answers by heart, by path, and remembers what it was
// asked. It gives tokens of its own accord: token-1, token-2 and so on. Of
// several replies the last is given again and again.
type stub struct {
	url     string
	mu      sync.Mutex
	replies map[string][]reply
	seen    []seen
	tokens  int
}

const tokenPath = "/v1.0/access-token/b2b"

func newStub(t *testing.T, replies map[string][]reply) *stub {
	t.Helper()
	s := &stub{replies: replies}
	s.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		answer := s.answer(seen{r.RequestURI, string(body), r.Header.Clone()})
		w.WriteHeader(answer.status)
		_, _ = io.WriteString(w, answer.body)
	})
	return s
}

func (s *stub) answer(request seen) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, request)
	list := s.replies[request.path]
	switch {
	case len(list) > 1:
		s.replies[request.path] = list[1:]
		return list[0]
	case len(list) == 1:
		return list[0]
	case request.path == tokenPath:
		s.tokens++
		return reply{200, fmt.Sprintf(`{"responseCode":"2007300","responseMessage":"Successful","accessToken":"token-%d","tokenType":"Bearer","expiresIn":"900"}`, s.tokens)}
	}
	return reply{404, `no such page`}
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// of returns the requests to a path so far.
func (s *stub) of(path string) (list []seen) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.seen {
		if r.path == path {
			list = append(list, r)
		}
	}
	return list
}

func (s *stub) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

func (s *stub) only(t *testing.T, path string) seen {
	t.Helper()
	list := s.of(path)
	if len(list) != 1 {
		t.Fatalf("%s got %d requests, want 1", path, len(list))
	}
	return list[0]
}

// coded is an answer with a code of a service, and further members.
func coded(status int, code, members string) reply {
	if members != "" {
		members = "," + members
	}
	return reply{status, `{"responseCode":"` + code + `","responseMessage":"in the upstream's words"` + members + `}`}
}

func newAdapter(t *testing.T) *adapter {
	t.Helper()
	table, err := os.ReadFile("../banks.csv")
	if err != nil {
		t.Fatal(err)
	}
	banks, err := ReadBanks(table)
	if err != nil {
		t.Fatal(err)
	}
	return &adapter{banks: banks, now: func() time.Time { return today }}
}

// connect makes a connection. Settings come in pairs, and replace the usual.
func connect(t *testing.T, base string, settings ...any) sdk.Connection {
	t.Helper()
	credentials := map[string]any{
		"base_url": base, "client_id": "client-1", "partner_id": "partner-1", "channel_id": "95221", "customer_number": payer,
		"client_secret": testSecret, "private_key": privatePEM(t, keys().ours),
		"provider_public_key": publicPEM(t, &keys().theirs.PublicKey),
	}
	for i := 0; i+1 < len(settings); i += 2 {
		name, ok := settings[i].(string)
		if !ok {
			t.Fatalf("setting %v has no name", settings[i])
		}
		credentials[name] = settings[i+1]
	}
	encoded, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Connection{MerchantID: "m1", Mode: "test", Version: 1, Credentials: encoded}
}

const (
	walletOrder = `{"phone":"0813-8837-0001","amount":10000,"message":"Kopi & roti"}`
	bankOrder   = `{"bank_code":"014","account_no":"246 088 8509","account_name":"BUDI","amount":10000}`

	walletAgreed = `{"phone":"6281388370001","name":"Budi","session":"s-1"}`
	bankAgreed   = `{"bank":"014","account":"2460888509","name":"BUDI","session":"s-1"}`
)

func walletCall(c sdk.Connection) sdk.Call {
	return sdk.Call{
		Operation: walletTransfer, Connection: c, Reference: reference, Amount: 10000,
		Body: json.RawMessage(walletOrder), Quote: json.RawMessage(walletAgreed), SendBy: today.Add(time.Minute),
	}
}

func bankCall(c sdk.Connection) sdk.Call {
	return sdk.Call{
		Operation: bankTransfer, Connection: c, Reference: reference, Amount: 10000,
		Body: json.RawMessage(bankOrder), Quote: json.RawMessage(bankAgreed), SendBy: today.Add(time.Minute),
	}
}

func queryCall(c sdk.Connection, operation, body string) sdk.Call {
	return sdk.Call{Operation: operation, Connection: c, Body: json.RawMessage(body)}
}

func lookupOf(c sdk.Connection, operation string) sdk.Lookup {
	return sdk.Lookup{Operation: operation, Connection: c, Reference: reference, Amount: 10000}
}

func quoteOf(c sdk.Connection, operation, body string) sdk.Quote {
	return sdk.Quote{Operation: operation, Connection: c, Reference: reference, Body: json.RawMessage(body)}
}

// The paths of the standard.
const (
	walletInquiryPath = "/v1.0/emoney/account-inquiry"
	topUpPath         = "/v1.0/emoney/topup"
	topUpStatusPath   = "/v1.0/emoney/topup-status"
	bankInquiryPath   = "/v1.0/emoney/bank-account-inquiry"
	bankTransferPath  = "/v1.0/emoney/transfer-bank"
	bankStatusPath    = "/v1.0/emoney/transfer-bank-status"
	historyPath       = "/v1.0/transaction-history-list"
	balancePath       = "/v1.0/balance-inquiry"
)

const (
	toppedUp   = `"referenceNo":"up-1","partnerReferenceNo":"` + reference + `","customerNumber":"` + receiver + `","amount":{"value":"10000.00","currency":"IDR"}`
	bankIsDone = `"referenceNo":"up-1","partnerReferenceNo":"` + reference + `","referenceNumber":"123"`
)
