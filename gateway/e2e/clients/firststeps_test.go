package clients_test

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	firstpayment "github.com/seed-f006e74d/gerbang/deploy/examples/first-payment"
	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestFirstSteps runs the programs of the list of first steps, in each language: one makes a payment, and the other
// verifies callbacks, as the gateway finds by asking it.
func TestFirstSteps(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	program := func(t *testing.T, name, by string) *exec.Cmd {
		t.Helper()
		text, err := firstpayment.Files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if by != "go" {
			return exec.Command(by, path)
		}
		if out, err := exec.Command("go", "build", "-o", path+".run", path).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return exec.Command(path + ".run")
	}
	for ending, by := range map[string]string{"sh": "sh", "go": "go", "mjs": "node", "php": "php", "py": "python3"} {
		t.Run(ending, func(t *testing.T) {
			t.Parallel()
			m := p.NewMerchant(t)
			pay := program(t, "pay."+ending, by)
			pay.Env = append(os.Environ(), "API="+p.APIURL, "KEY="+m.TestKey, "MERCHANT="+m.MerchantID)
			var made struct {
				Success bool
				Data    struct {
					CheckoutURL string `json:"checkout_url"`
				}
			}
			if out, err := pay.Output(); err != nil || json.Unmarshal(out, &made) != nil || !made.Success || !strings.HasPrefix(made.Data.CheckoutURL, "http") {
				t.Fatalf("it makes %s, %v", out, err)
			}
			if ending == "sh" {
				return // nothing of the shell receives
			}
			address := harness.FreeAddress(t)
			_, port, _ := net.SplitHostPort(address)
			receiver := program(t, "receive."+ending, by)
			if by == "php" {
				receiver.Args = []string{by, "-S", address, receiver.Args[1]}
			}
			receiver.Env = append(os.Environ(), "PORT="+port, "CALLBACK_SECRET="+m.TestCallbackSecret)
			if err := receiver.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = receiver.Process.Kill(); _ = receiver.Wait() })
			harness.Await(t, harness.ReadyWithin, "the receiver", func() bool {
				connection, err := net.Dial("tcp", address)
				if err == nil {
					connection.Close()
				}
				return err == nil
			})
			found, err := adminapi.VerifyCallback.Call(t.Context(), p.Admin(), adminapi.TestOrder{Merchant: m.MerchantID, Mode: "test", URL: "http://" + address + "/callbacks"})
			if err != nil || !found.Verifies || found.Signed.Status != 204 || found.Forged.Status != 401 {
				t.Errorf("it answers %+v, %v", found, err)
			}
		})
	}
}
