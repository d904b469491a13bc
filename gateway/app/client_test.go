package app_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// httpClient is a merchant's: patient, and with connections for a load.
var httpClient = &http.Client{
	Timeout:   time.Minute,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, IdleConnTimeout: 5 * time.Second},
}

// answer is what the gateway answered, which was seen to be in the contract's
// shape.
type answer struct {
	HTTP   int
	Header http.Header
	Body   []byte
	envelope
}

type envelope struct {
	Success    bool            `json:"success"`
	Data       json.RawMessage `json:"data"`
	Message    string          `json:"message"`
	Code       fault.Code      `json:"error_code"`
	RequestID  string          `json:"request_id"`
	Errors     []fault.Field   `json:"errors"`
	Sent       fault.Sent      `json:"sent"`
	Retry      fault.Retry     `json:"retry"`
	RetryAt    string          `json:"retry_at"`
	ExternalID string          `json:"external_id"`
}

func (a answer) String() string {
	return strconv.Itoa(a.HTTP) + " " + strings.TrimSpace(string(a.Body))
}

// payment reads the data of an answer.
func (a answer) payment() payment {
	var p payment
	_ = json.Unmarshal(a.Data, &p)
	return p
}

// keys are the names in the data of an answer, sorted.
func (a answer) keys() []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(a.Data, &fields)
	return slices.Sorted(maps.Keys(fields))
}

func (a answer) replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// payment is the data of create, status and cancel together.
type payment struct {
	ExternalID  string `json:"external_id"`
	CheckoutURL string `json:"checkout_url"`
	QRString    string `json:"qr_string"`
	Status      string `json:"status"`
	Amount      int64  `json:"amount"`
	PayerEmail  string `json:"payer_email"`
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`
	PaidLateAt  string `json:"paid_late_at"`
}

// send sends a request to the gateway. The error is the transport's, or says
// how the answer breaks the contract; an answer that says no is no error.
func (p *program) send(ctx context.Context, method, path string, body []byte, header http.Header) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, p.APIURL+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(request.Header, header)
	response, err := httpClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	a := answer{HTTP: response.StatusCode, Header: response.Header}
	if a.Body, err = io.ReadAll(response.Body); err != nil {
		return answer{}, err
	}
	return a, a.inShape()
}

// inShape holds an answer against the contract's envelope.
func (a *answer) inShape() error {
	if err := json.Unmarshal(a.Body, &a.envelope); err != nil {
		return fmt.Errorf("%s: not the envelope: %w", a, err)
	}
	var wrong []error
	expect := func(holds bool, text string) {
		if !holds {
			wrong = append(wrong, fmt.Errorf("%s: %s", a, text))
		}
	}
	id := a.Header.Get("X-Request-Id")
	expect(a.Header.Get("Content-Type") == "application/json", "Content-Type "+a.Header.Get("Content-Type"))
	expect(id != "", "no X-Request-Id")
	expect(a.Header.Get("X-Svc-Version") == "1.2.0", "X-Svc-Version "+a.Header.Get("X-Svc-Version"))
	expect(a.Success == (a.HTTP == http.StatusOK), "success and status disagree")
	if a.Success {
		expect(a.Code == "" && len(a.Data) > 0, "a success with an error, or without data")
		return errors.Join(wrong...)
	}
	row := fault.RowOf(a.Code)
	expect(row.Code == a.Code && row.Status == a.HTTP, "the code is not the table's, or not with this status")
	expect(a.Message != "" && a.RequestID == id, "no message, or another request_id than the header's")
	expect(slices.Contains([]fault.Sent{fault.SentNo, fault.SentRefused, fault.SentUnknown}, a.Sent), "sent")
	expect(slices.Contains([]fault.Retry{fault.RetryNever, fault.RetryAfterChange, fault.RetryLater, fault.RetryLookupFirst}, a.Retry), "retry")
	if wait := a.Header.Get("Retry-After"); wait != "" {
		seconds, err := strconv.Atoi(wait)
		expect(err == nil && seconds >= 1 && seconds <= 3600, "Retry-After "+wait)
	}
	return errors.Join(wrong...)
}

// shop is a merchant in a mode.
type shop struct {
	*program
	merchant, key string
}

const (
	large = 0 // the demo merchant of tier scale
	small = 1 // the demo merchant of tier starter
)

func (p *program) shop(merchant int, mode string) shop {
	m := p.Merchants[merchant]
	if mode == "live" {
		return shop{p, m.MerchantID, m.LiveKey}
	}
	return shop{p, m.MerchantID, m.TestKey}
}

type fields map[string]any

// with is the fields and others, which win; nil leaves a field out.
func (f fields) with(others fields) fields {
	all := maps.Clone(f)
	maps.Copy(all, others)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	return all
}

// order is the least that a payment needs, under a reference of its own.
func (s shop) order(others fields) fields {
	return fields{
		"merchant_id": s.merchant, "amount": 10000, "payer_email": "payer@example.com", "external_id": uuid.NewString(),
	}.with(others)
}

// post calls an operation with the shop's key.
func (s shop) post(ctx context.Context, path string, f fields, headers ...string) (answer, error) {
	body, err := json.Marshal(fields{"secret_key": s.key}.with(f))
	if err != nil {
		return answer{}, err
	}
	header := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		header.Set(headers[i], headers[i+1])
	}
	return s.send(ctx, http.MethodPost, path, body, header)
}

// ask is post for the test's own goroutine.
func (s shop) ask(t testing.TB, path string, f fields, headers ...string) answer {
	t.Helper()
	a, err := s.post(t.Context(), path, f, headers...)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return a
}

// create makes a payment, which must succeed.
func (s shop) create(t testing.TB, others fields) payment {
	t.Helper()
	a := s.ask(t, "/payments/create", s.order(others))
	if !a.Success {
		t.Fatalf("create: %s", a)
	}
	return a.payment()
}

// status asks how a payment stands, which must be answered.
func (s shop) status(t testing.TB, reference string) payment {
	t.Helper()
	a := s.ask(t, "/payments/status", fields{"external_id": reference})
	if !a.Success {
		t.Fatalf("status: %s", a)
	}
	return a.payment()
}

// becomes waits until a payment has a status.
func (s shop) becomes(t testing.TB, reference, status string, within time.Duration) payment {
	t.Helper()
	var last payment
	if err := until(within, func() bool {
		last = s.status(t, reference)
		return last.Status == status
	}); err != nil {
		t.Fatalf("%s is %s after %v, want %s", reference, last.Status, within, status)
	}
	return last
}

// witnessed is a movement as the simulated upstream saw it.
type witnessed struct {
	Provider    string `json:"provider"`
	Reference   string `json:"reference"`
	Destination string `json:"destination"`
	Amount      int64  `json:"amount"`
	State       string `json:"state"`
	At          string `json:"at"`
}

// door calls the sandbox's own door; a nil body is a GET.
func (p *program) door(t testing.TB, path string, body, into any) int {
	t.Helper()
	method, content := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(t.Context(), method, p.SandboxURL+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	response, err := httpClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("the sandbox's %s: %d, %v", path, response.StatusCode, err)
	}
	return response.StatusCode
}

// pay pays as a payer would, which must work.
func (p *program) pay(t testing.TB, what fields) witnessed {
	t.Helper()
	var receipt json.RawMessage
	if status := p.door(t, "/pay", what, &receipt); status != http.StatusOK {
		t.Fatalf("pay %v: %d %s", what, status, receipt)
	}
	var w witnessed
	if err := json.Unmarshal(receipt, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

func (p *program) movements(t testing.TB) []witnessed {
	t.Helper()
	var all []witnessed
	if status := p.door(t, "/movements", nil, &all); status != http.StatusOK {
		t.Fatalf("movements: %d", status)
	}
	return all
}

// onceUpstream is the independent witness's word: nothing exists twice, neither
// by the upstream's reference nor by the amounts, which tests that use it keep
// different for each reference of theirs. It returns how often each amount is
// there.
func (p *program) onceUpstream(t testing.TB) map[int64]int {
	t.Helper()
	references, amounts := map[string]int{}, map[int64]int{}
	for _, m := range p.movements(t) {
		amounts[m.Amount]++
		if references[m.Reference]++; references[m.Reference] == 2 {
			t.Errorf("upstream reference %s is there twice", m.Reference)
		}
		if amounts[m.Amount] == 2 {
			t.Errorf("a payment of %d is there twice upstream", m.Amount)
		}
	}
	return amounts
}

// inject makes the next calls of an operation for payments fail.
func (p *program) inject(t testing.TB, fault, operation string, count int) {
	t.Helper()
	p.injectInto(t, "payments", fault, operation, count)
}

func (p *program) injectInto(t testing.TB, provider, fault, operation string, count int) {
	t.Helper()
	var told json.RawMessage
	body := fields{"provider": provider, "fault": fault, "count": count, "operation": operation}
	if operation == "" {
		delete(body, "operation")
	}
	if status := p.door(t, "/faults", body, &told); status != http.StatusOK {
		t.Fatalf("fault %s: %d %s", fault, status, told)
	}
}
