package policy_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// checkGate pushes sets that fit neither the merchants nor the operations of a running program, and tries a case.
func checkGate(t *testing.T, s harness.Shop) {
	t.Helper()
	p, dir := s.Program, filepath.Join(t.TempDir(), "policy")
	if out, err := p.Run(t, "policy", "export", dir); err != nil {
		t.Fatal(out, err)
	}
	file := filepath.Join(dir, "data.json")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write := func(old, becomes string) {
		t.Helper()
		if !strings.Contains(string(content), old) {
			t.Fatalf("the default data has no %s", old)
		}
		if err := os.WriteFile(file, []byte(strings.Replace(string(content), old, becomes, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	push := func(flags ...string) (findings []string, state string) {
		t.Helper()
		out, err := p.Run(t, append([]string{"--json", "policy", "push", dir, "-m", "a try"}, flags...)...)
		var v struct {
			State    string
			Findings []struct {
				Check, File, Reason string
				Line, Merchants     int
				Warning             bool
			}
		}
		start := strings.Index(out, "{") // the version; what is refused has an error after it
		if start < 0 || json.NewDecoder(strings.NewReader(out[start:])).Decode(&v) != nil {
			t.Fatal(out, err)
		}
		for _, f := range v.Findings {
			if f.Check == "cost" && f.Warning { // of a busy machine
				continue
			}
			findings = append(findings, fmt.Sprintf("%s %s:%d %s (%d)", f.Check, f.File, f.Line, f.Reason, f.Merchants))
		}
		return findings, v.State
	}
	write(`"starter": {`, `"small": {`)
	if found, state := push(); state != "refused" || len(found) != 1 || !strings.HasPrefix(found[0], `meaning data.json:2 merchants are on the tier "starter"`) || strings.HasSuffix(found[0], "(0)") {
		t.Errorf("without a tier in use: %s, %q", state, found)
	}
	if found, state := push("--force", "--reason", "they move tonight"); state != "pushed" || len(found) != 1 {
		t.Errorf("forced: %s, %q", state, found)
	}
	write(`"/wallet2/create"`, `"/walet2/create"`)
	if found, state := push(); state != "refused" || len(found) != 1 || !strings.HasPrefix(found[0], `meaning data.json:21 no operation has the path "/walet2/create"; is it "/wallet2/create"?`) {
		t.Errorf("with a misspelt path: %s, %q", state, found)
	}
	write(`"products": {}`, `"products": {"xld10": 100, "xld01": 200}`)
	if found, state := push(); state != "pushed" || len(found) != 1 || found[0] != `meaning data.json:31 no product is called "xld01" (0)` {
		t.Errorf("with an unknown product: %s, %q", state, found)
	}
	write(`"amounts": {}`, `"amounts": {"transfer": {"max": 1000}}`)
	if found, state := push(); state != "pushed" || len(found) > 0 {
		t.Errorf("a good one: %s, %q", state, found)
	}
	// Slow for a payment that a merchant has made, and for nothing that is generated.
	slow := filepath.Join(dir, "slow.rego")
	const rule = "package gerbang\n\nrefusals contains \"slow\" if {\n\tinput.amount == 4000\n\tsome i in numbers.range(1, 30000)\n\ti < 0\n}\n"
	if err := os.WriteFile(slow, []byte(rule), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, state := push("--force", "--reason", "no cost is overruled"); state != "refused" || len(found) != 1 ||
		!strings.HasPrefix(found[0], "cost slow.rego:5 the rule gerbang.refusals takes more than 20000 evaluation steps, asked about a recorded request of /payments/create") {
		t.Errorf("a rule that is slow for what was asked: %s, %q", state, found)
	}
	if err := os.Remove(slow); err != nil {
		t.Fatal(err)
	}
	input := filepath.Join(t.TempDir(), "transfer.json")
	if err := os.WriteFile(input, []byte(`{"amount": 20000, "bank_code": "014", "account_no": "1234567890"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(t, "policy", "try", "--operation", "/wallet1/transfer/bank", "--merchant", s.MerchantID, "--input", input, "--dir", dir)
	if err != nil || !strings.Contains(out, "denied") || !strings.Contains(out, "The amount must be at most 1000. (gerbang.refusals, "+dir+"/admit.rego:") {
		t.Errorf("tried: %s, %v", out, err)
	}
}
