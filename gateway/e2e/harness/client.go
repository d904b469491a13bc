package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// HTTPClient is a merchant's: patient, and with connections for a load.
var HTTPClient = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 5 * time.Second},
	// Where an answer leads is for the test to see.
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// Send sends a request to the gateway. The error is the transport's, or says
// how the answer breaks the contract; an answer that says no is no error.
func (p *Program) Send(ctx context.Context, method, path string, body []byte, header http.Header) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.APIURL+path, bytes.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	maps.Copy(request.Header, header)
	response, err := HTTPClient.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer response.Body.Close()
	a := Answer{HTTP: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return Answer{}, err
	}
	return a, a.inShape()
}

// Shop is a merchant in one mode, at one program.
type Shop struct {
	*Program
	MerchantID, Key string
}

// The demo merchants, by their place in the ready file.
const (
	Large = 0 // the demo merchant of tier scale
	Small = 1 // the demo merchant of tier starter
)

// Shop is a demo merchant, Large or Small, in mode live or test.
func (p *Program) Shop(merchant int, mode string) Shop {
	m := p.Merchants[merchant]
	if mode == "live" {
		return Shop{p, m.MerchantID, m.LiveKey}
	}
	return Shop{p, m.MerchantID, m.TestKey}
}

// Fields are the members of a request.
type Fields map[string]any

// With returns the fields with others laid over them; nil removes a field.
func (f Fields) With(others Fields) Fields {
	all := maps.Clone(f)
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// PaymentBody is the least that a payment needs, under a reference of its own.
func (s Shop) PaymentBody(others Fields) Fields {
	return Fields{
		"merchant_id": s.MerchantID, "amount": 10000, "payer_email": "payer@example.com", "external_id": uuid.NewString(),
	}.With(others)
}

// Post calls an operation with the shop's key.
func (s Shop) Post(ctx context.Context, path string, f Fields, headers ...string) (Answer, error) {
	body, err := json.Marshal(Fields{"secret_key": s.Key}.With(f))
	if err != nil {
		return Answer{}, err
	}
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return s.Send(ctx, http.MethodPost, path, body, header)
}

// Insist is Post again as long as the gateway has a fault of its own and has sent nothing, as merchants do: on a busy
// machine a request may not be judged in time. The last answer counts.
func (s Shop) Insist(ctx context.Context, path string, f Fields, headers ...string) (a Answer, err error) {
	_ = Until(ActsWithin, func() bool {
		a, err = s.Post(ctx, path, f, headers...)
		return err != nil || a.Code != fault.Internal || a.Sent != fault.SentNo || a.Retry != fault.RetryLater
	})
	return a, err
}

// Ask is Insist for the test's own goroutine.
func (s Shop) Ask(t testing.TB, path string, f Fields, headers ...string) Answer {
	t.Helper()
	a, err := s.Insist(t.Context(), path, f, headers...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

// Create makes a payment, which must succeed.
func (s Shop) Create(t testing.TB, others Fields) Payment {
	t.Helper()
	a := s.Ask(t, "/payments/create", s.PaymentBody(others))
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	return a.Payment()
}

// Status asks how a payment stands, which must be answered.
func (s Shop) Status(t testing.TB, reference string) Payment {
	t.Helper()
	a := s.Ask(t, "/payments/status", Fields{"external_id": reference})
	if !a.Success {
		t.Fatalf("status: %s", a)
	}
	return a.Payment()
}

// AwaitStatus waits until a payment has a status.
func (s Shop) AwaitStatus(t testing.TB, reference, status string, within time.Duration) Payment {
	t.Helper()
	var last Payment
	if err := Until(within, func() bool {
		last = s.Status(t, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s is %s after %v, want %s", reference, last.Status, within, status)
	}
	return last
}

// CheckoutURL is the page of a payment, which moves with the program's port.
func (p *Program) CheckoutURL(made Payment) string {
	return p.APIURL + made.CheckoutURL[strings.Index(made.CheckoutURL, "/checkout/"):]
}

// Get reads a page as a browser without scripts would.
func (p *Program) Get(t testing.TB, url string) (int, []byte, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := HTTPClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, content, response.Header
}

// PaymentLink is how a checkout page names the provider's page.
var PaymentLink = regexp.MustCompile(`<link rel="payment" href="([^"]+)">`)

// ProviderPage is where a payment link sends its payer on to.
func (p *Program) ProviderPage(t testing.TB, checkout string) string {
	t.Helper()
	status, page, header := p.Get(t, checkout)
	if status != http.StatusFound || header.Get("Location") == "" {
		t.Fatalf("%s answers %d and does not go on to the provider's page:\n%s", checkout, status, page)
	}
	return header.Get("Location")
}
