package harness

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// Answer is what the gateway answered, checked against the contract's envelope.
type Answer struct {
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

// String is the answer as failures quote it.
func (a Answer) String() string {
	return strconv.Itoa(a.HTTP) + " " + strings.TrimSpace(string(a.Body))
}

// Payment reads the data of an answer.
func (a Answer) Payment() Payment {
	var p Payment
	_ = json.Unmarshal(a.Data, &p) // a refusal has no data, and what is no payment has none of its fields
	return p
}

// Keys are the names in the data of an answer, sorted.
func (a Answer) Keys() []string {
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(a.Data, &fields) // a refusal has no data, and a list no names
	return slices.Sorted(maps.Keys(fields))
}

// Replayed tells whether the answer is that of an earlier request.
func (a Answer) Replayed() bool { return a.Header.Get("Idempotent-Replayed") == "true" }

// Payment is the data of create, status and cancel together.
type Payment struct {
	ExternalID  string `json:"external_id"`
	CheckoutURL string `json:"checkout_url"`
	QRString    string `json:"qr_string"`
	Status      string `json:"status"`
	Amount      int64  `json:"amount"`
	PayerEmail  string `json:"payer_email"`
	CreatedAt   string `json:"created_at"`
	UpdatedAt   string `json:"updated_at"`
	PaidAt      string `json:"paid_at"`
	Channel     string `json:"channel"`
	PaidLateAt  string `json:"paid_late_at"`

	ProviderReference string `json:"provider_reference"`
}

// inShape holds an answer against the contract's envelope.
func (a *Answer) inShape() error {
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

// WantBody holds a success against a body, byte for byte.
func WantBody(t testing.TB, a Answer, want string) {
	t.Helper()
	if got := string(bytes.TrimSpace(a.Body)); a.HTTP != http.StatusOK || got != want {
		t.Errorf("answered %d\n%s, want\n%s", a.HTTP, got, want)
	}
}

// WantQuotaExceeded checks the answer to a request beyond a monthly quota.
func WantQuotaExceeded(t *testing.T, a Answer) {
	t.Helper()
	var told struct {
		Remaining *int `json:"remaining_quota"`
	}
	at, err := time.Parse(time.RFC3339, a.RetryAt)
	if a.HTTP != http.StatusTooManyRequests || json.Unmarshal(a.Body, &told) != nil || told.Remaining == nil || *told.Remaining != 0 ||
		err != nil || at.Day() < 28 || at.Hour() != 17 || a.Header.Get("Retry-After") == "" || a.Header.Get("X-Svc-Decision-Id") == "" {
		t.Errorf("%s, headers %v", a, a.Header)
	}
}

// Refusal is what an error tells a merchant: its code, whether the provider has
// the request, and whether to send it again.
type Refusal struct {
	Code  fault.Code
	Sent  fault.Sent
	Retry fault.Retry
}

// The refusals of the contract's error table.
var (
	InvalidInput        = Refusal{fault.InvalidRequest, fault.SentNo, fault.RetryAfterChange}
	DestinationInvalid  = Refusal{fault.DestinationInvalid, fault.SentNo, fault.RetryAfterChange}
	InquiryRejected     = Refusal{fault.ProviderRejected, fault.SentNo, fault.RetryAfterChange}
	DestinationRefused  = Refusal{fault.DestinationInvalid, fault.SentRefused, fault.RetryNever}
	ProviderRejected    = Refusal{fault.ProviderRejected, fault.SentRefused, fault.RetryNever}
	ProviderUnavailable = Refusal{fault.ProviderUnavailable, fault.SentNo, fault.RetryLater}
	ProviderTimeout     = Refusal{fault.ProviderTimeout, fault.SentUnknown, fault.RetryLookupFirst}
	NoConnection        = Refusal{fault.NoConnection, fault.SentNo, fault.RetryAfterChange}
	NotFound            = Refusal{fault.NotFound, fault.SentNo, fault.RetryNever}
	DuplicateReference  = Refusal{fault.DuplicateReference, fault.SentNo, fault.RetryNever}
	DuplicateTransfer   = Refusal{fault.DuplicateTransfer, fault.SentNo, fault.RetryAfterChange}
	ScopeMissing        = Refusal{fault.ScopeMissing, fault.SentNo, fault.RetryAfterChange}
	PolicyDenied        = Refusal{fault.PolicyDenied, fault.SentNo, fault.RetryAfterChange}
)

// Want holds an answer against the refusal. Names are the fields at fault, sorted.
func (r Refusal) Want(t testing.TB, what string, a Answer, reference string, names ...string) {
	t.Helper()
	var told []string
	for _, f := range a.Errors {
		told = append(told, f.Field)
	}
	slices.Sort(told)
	if a.Success || (Refusal{a.Code, a.Sent, a.Retry}) != r || a.ExternalID != reference || !slices.Equal(told, names) {
		t.Errorf("%s: %s, want %v of %q about %q", what, a, r, reference, names)
	}
}
