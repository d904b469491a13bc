package operations_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestDeclaredPlatform writes the file of the handbook's chapter, pastes its commands, and takes a payment for the shop that they made.
func TestDeclaredPlatform(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed: nobody has pasted the lines")
	}
	handbook, err := os.ReadFile(filepath.Join(harness.Root, "deploy", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, chapter, _ := strings.Cut(string(handbook), "\n## Declare the platform\n")
	blocks := regexp.MustCompile("(?s)```(yaml|sh)\n(.*?)```").FindAllStringSubmatch(chapter, 2)
	if len(blocks) != 2 || blocks[0][1] != "yaml" || blocks[1][1] != "sh" {
		t.Fatal("the handbook's chapter has no file and commands")
	}
	d := harness.NewDeployment(t)
	p := d.Start(t, harness.ServeDatabase(t))[0]
	var opened struct{ Credentials json.RawMessage }
	if status := d.Simulator().Sandbox(t, "/connect", harness.Fields{"merchant": "Toko Melati", "mode": "live"}, &opened); status != http.StatusOK {
		t.Fatalf("connect: %d", status)
	}
	dir := t.TempDir()
	for name, content := range map[string]string{"shop.yaml": blocks[0][2], "account.json": string(opened.Credentials)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.CommandContext(t.Context(), "bash", "-euc", blocks[1][2])
	command.Dir = dir
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(harness.Binary(t))+":"+os.Getenv("PATH"), "GERBANG_ADMIN_URL="+p.ConsoleURL, "GERBANG_ADMIN_TOKEN="+p.AdminToken)
	out, err := command.CombinedOutput()
	if err != nil || strings.Contains(string(out), "sk_live_") || strings.Count(string(out), "Everything is as declared.") != 1 || !strings.Contains(string(out), "unchanged") {
		t.Fatalf("%v\n%s", err, out)
	}
	var made adminapi.CreatedMerchant
	kept, err := os.ReadFile(filepath.Join(dir, "secrets", "merchant-Toko%20Melati.json"))
	if err == nil {
		err = json.Unmarshal(kept, &made)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.KeepSecret(harness.Merchant{MerchantID: made.MerchantID, LiveKey: made.LiveKey, TestKey: made.TestKey, CallbackSecret: made.CallbackSecret, TestCallbackSecret: made.TestCallbackSecret})
	shop := harness.Shop{Program: p, MerchantID: made.MerchantID, Key: made.LiveKey}
	if payment := shop.Create(t, harness.Fields{"external_id": "declared-1"}); payment.ExternalID != "declared-1" {
		t.Errorf("the declared shop's payment is %+v", payment)
	}
}
