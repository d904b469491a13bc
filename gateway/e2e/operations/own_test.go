package operations_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// A plugin that gerbang plugin new has written is served by gerbang dev in place of the
// shipped one, and what is built anew is swapped in without a restart.
func TestDevRunsAPluginOfOnesOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "warung")
	if out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "new", "warung", "--implements", "payments", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build(t, dir)
	p := harness.Start(t, harness.Settings{Flags: []string{"--plugin", filepath.Join(dir, "warung")}})
	s := p.Shop(harness.Large, "test")
	body := s.PaymentBody(harness.Fields{"amount": 31000})
	first := s.Ask(t, "/payments/create", body, "X-Callback-URL", p.SandboxURL+"/inbox")
	made := first.Payment()
	wantCode := func(where, text string) {
		t.Helper()
		if !strings.Contains(text, `"payment_code":"`) {
			t.Errorf("%s: %s has no payment_code", where, text)
		}
	}
	wantCode("creation", string(first.Data))
	if moved := p.Pay(t, harness.Fields{"url": made.CheckoutURL}); moved.Amount != 31000 {
		t.Errorf("paid %+v", moved)
	}
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	wantCode("status", string(s.Ask(t, "/payments/status", harness.Fields{"external_id": made.ExternalID}).Data))
	wantCode("callback", p.AwaitInbox(t, "payments.status_update", made.ExternalID).Body)
	wantCode("replay", string(s.Ask(t, "/payments/create", body, "X-Callback-URL", p.SandboxURL+"/inbox").Data))

	file := filepath.Join(dir, "manifest.json")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(`"0.1.0"`), []byte(`"0.2.0"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	build(t, dir)
	harness.Await(t, harness.ReadyWithin, "the plugin that was built anew", func() bool {
		plugin, err := p.Plugin(t, "warung")
		return err == nil && plugin.Running && plugin.Version == "0.2.0"
	})
	s.Create(t, harness.Fields{"amount": 31001, "type": "qris"})
}

func build(t *testing.T, dir string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-o", "warung", ".")
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
