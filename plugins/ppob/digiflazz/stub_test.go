package digiflazz

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

const (
	testUser   = "username"
	testKey    = "dev-0123456789abcdef"
	testSecret = "somesecretvalue"
	reference  = "0123456789abcdef0123456789abcdef-1"
)

// today is a late evening in Jakarta, and still the same date in UTC.
var today = time.Date(2026, 11, 20, 16, 30, 0, 0, time.UTC)

// canned is an answer of a stub.
type canned struct {
	status int
	body   string
}

// seen is a request as a stub got it.
type seen struct {
	path string
	body map[string]any
	raw  string
}

// stub is an upstream that answers by heart, by path and command, and remembers
// what it was asked.
type stub struct {
	url  string
	mu   sync.Mutex
	seen []seen
}

// newStub answers by "path command"; the command is empty for a prepaid order.
func newStub(t *testing.T, replies map[string]canned) *stub {
	t.Helper()
	s := &stub{}
	s.url = serve(t, func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the request: %v", err)
		}
		got := seen{path: r.URL.Path, raw: string(raw)}
		if err := json.Unmarshal(raw, &got.body); err != nil {
			t.Errorf("read the request: %v", err)
		}
		s.mu.Lock()
		s.seen = append(s.seen, got)
		s.mu.Unlock()
		command, _ := got.body["commands"].(string)
		if cmd, ok := got.body["cmd"].(string); ok {
			command = cmd
		}
		answer, ok := replies[r.URL.Path+" "+command]
		if !ok {
			answer = canned{http.StatusBadGateway, "<html>"}
		}
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

func (s *stub) asked() []seen {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]seen{}, s.seen...)
}

func (s *stub) only(t *testing.T) seen {
	t.Helper()
	asked := s.asked()
	if len(asked) != 1 {
		t.Fatalf("the upstream got %d requests, want 1", len(asked))
	}
	return asked[0]
}

func newAdapter() *adapter { return &adapter{now: func() time.Time { return today }} }

// connect makes a connection with the test account. Settings come in pairs.
func connect(t *testing.T, base string, settings ...any) sdk.Connection {
	t.Helper()
	credentials := map[string]any{"username": testUser, "api_key": testKey, "webhook_secret": testSecret, "base_url": base}
	for i := 0; i+1 < len(settings); i += 2 {
		credentials[fmt.Sprint(settings[i])] = settings[i+1]
	}
	encoded, err := json.Marshal(credentials)
	if err != nil {
		t.Fatal(err)
	}
	return sdk.Connection{MerchantID: "platform", Mode: "test", Version: 1, Credentials: encoded}
}

// The purchases that most tests make.
const (
	pulsaQuote = `{"type":"Prepaid","sku":"xld10","target":"087800001230"}`
	plnQuote   = `{"type":"Pasca","sku":"pln","target":"530000000001","day":"2026-11-20"}`
)

// placed is a purchase as a quote on a connection leaves it.
func placed(t *testing.T, quote string, c sdk.Connection) string {
	t.Helper()
	acc, err := openAccount(c)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(quote, "}") + `,"place":"` + string(acc.place) + `"}`
}

func callOf(c sdk.Connection, quote string, cost money.Amount) sdk.Call {
	return sdk.Call{
		Operation: "/ppob/order", Connection: c, Reference: reference, Cost: cost, Quote: json.RawMessage(quote),
		SendBy: time.Now().Add(time.Minute),
	}
}

func lookupOf(c sdk.Connection, quote string, cost money.Amount) sdk.Lookup {
	return sdk.Lookup{
		Operation: "/ppob/order", Connection: c, Reference: reference, Cost: cost, Quote: json.RawMessage(quote),
		SentAt: today.Add(-time.Minute), SendBy: time.Now().Add(time.Minute),
	}
}

// anAnswer is the data of a transaction with the members given behind it.
func anAnswer(status, rc, extra string) string {
	return `{"data":{"ref_id":"` + reference + `","customer_no":"087800001230","buyer_sku_code":"xld10","message":"pesan",
"status":"` + status + `","rc":"` + rc + `","buyer_last_saldo":990000` + extra + `}}`
}

const (
	bought = `,"sn":"0041002331","price":10850,"tele":"@telegram","wa":"081234512345"`
	paid   = `,"sn":"S1234554321N","customer_name":"Nama Pelanggan Pertama","admin":2500,"price":10000,"selling_price":11000,
"periode":"201901","desc":{"tarif":"R1","daya":1300,"lembar_tagihan":1}`
	asked = `,"customer_name":"Nama Pelanggan Pertama","admin":2500,"price":10000,"selling_price":11000,"periode":"201901"`
)
