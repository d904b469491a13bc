package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"testing"
)

// UpstreamMovement is a movement as the simulated upstream saw it.
type UpstreamMovement struct {
	Provider    string `json:"provider"`
	Reference   string `json:"reference"`
	Destination string `json:"destination"`
	Amount      int64  `json:"amount"`
	State       string `json:"state"`
	At          string `json:"at"`
}

// Sandbox calls the simulators' control API; a nil body is a GET.
func (p *Program) Sandbox(t testing.TB, path string, body, into any) int {
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
	response, err := HTTPClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(into); err != nil {
		t.Fatalf("the sandbox's %s: %d, %v", path, response.StatusCode, err)
	}
	return response.StatusCode
}

// Pay pays as a payer would, which must work.
func (p *Program) Pay(t testing.TB, what Fields) UpstreamMovement {
	t.Helper()
	var receipt json.RawMessage
	if status := p.Sandbox(t, "/pay", what, &receipt); status != http.StatusOK {
		t.Fatalf("pay %v: %d %s", what, status, receipt)
	}
	var w UpstreamMovement
	if err := json.Unmarshal(receipt, &w); err != nil {
		t.Fatal(err)
	}
	return w
}

// UpstreamMovements are all movements that the simulated upstreams know.
func (p *Program) UpstreamMovements(t testing.TB) []UpstreamMovement {
	t.Helper()
	var all []UpstreamMovement
	if status := p.Sandbox(t, "/movements", nil, &all); status != http.StatusOK {
		t.Fatalf("movements: %d", status)
	}
	return all
}

// WantOnceUpstream checks the upstream's own list: no reference is there twice,
// and no amount, which the tests that use it keep different for each reference.
// It returns how often each amount is there.
func (p *Program) WantOnceUpstream(t testing.TB) map[int64]int {
	t.Helper()
	references, amounts := map[string]int{}, map[int64]int{}
	for _, m := range p.UpstreamMovements(t) {
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

// Inject makes the next calls of an operation for payments fail.
func (p *Program) Inject(t testing.TB, fault, operation string, count int) {
	t.Helper()
	p.InjectInto(t, "payments", fault, operation, count)
}

// InjectInto makes the next calls of a provider's operation fail; "" means any.
func (p *Program) InjectInto(t testing.TB, provider, fault, operation string, count int) {
	t.Helper()
	var told json.RawMessage
	body := Fields{"provider": provider, "fault": fault, "count": count, "operation": operation}
	if operation == "" {
		delete(body, "operation")
	}
	if status := p.Sandbox(t, "/faults", body, &told); status != http.StatusOK {
		t.Fatalf("fault %s: %d %s", fault, status, told)
	}
}

// FaultOperations are the simulator's names of what creates each type.
var FaultOperations = map[string]string{"payment_link": "invoices.create", "qris": "qr_codes.create"}

// TrySandbox gives the sandbox's door an order, and does not mind that it is
// closed.
func (p *Program) TrySandbox(ctx context.Context, path string, body Fields) bool {
	content, err := json.Marshal(body)
	if err != nil {
		return false
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, p.SandboxURL+path, bytes.NewReader(content))
	if err != nil {
		return false
	}
	response, err := HTTPClient.Do(request)
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// WantUpstream wants a payment of each amount upstream, and one only.
func (p *Program) WantUpstream(t *testing.T, amounts ...int64) {
	t.Helper()
	seen := map[int64]int{}
	for _, m := range p.UpstreamMovements(t) {
		seen[m.Amount]++
	}
	for _, amount := range amounts {
		if seen[amount] != 1 {
			t.Errorf("a payment of %d is %d times upstream, want once", amount, seen[amount])
		}
	}
}
