package sandbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestSetUp goes the handbook's way from the files of an archive and a database to a payment, with what the program itself prints.
func TestSetUp(t *testing.T) {
	t.Parallel()
	dir, nobody := filepath.Join(t.TempDir(), "gateway"), &harness.Program{}
	config, listen, console := filepath.Join(dir, "gerbang.yaml"), harness.FreeAddress(t), harness.FreeAddress(t)
	people := harness.FreeAddress(t)
	said := func(p *harness.Program, want string, arguments ...string) {
		t.Helper()
		if out, err := p.Run(t, arguments...); err != nil || !strings.Contains(out, want) {
			t.Fatalf("gerbang %s: %v, without %q:\n%s", strings.Join(arguments, " "), err, want, out)
		}
	}
	said(nobody, "gerbang check --config "+config, "init", dir, "--database-url", harness.ServeDatabase(t), "--public-url", "http://"+listen,
		"--listen", listen, "--console", console, "--merchants-console", people, "--merchants-console-url", "http://"+people)
	said(nobody, "this gateway makes", "check", "--config", config)
	token, err := os.ReadFile(filepath.Join(dir, "secrets", "operator-admin.token"))
	if err != nil {
		t.Fatal(err)
	}
	p := harness.LaunchAs(t, config, strings.TrimSpace(string(token)))
	p.AwaitServing(t)
	said(p, "every check of /readyz passes", "doctor")
	for _, address := range []string{listen, console, people} {
		said(p, address+" is taken, by a gateway that runs here", "check", "--config", config)
	}
	_, shop := newMerchant(t, p)
	made := shop.Create(t, harness.Fields{"external_id": "first"})
	must(t, play(t, p, idOf(made), "pay", 0))
	shop.AwaitStatus(t, "first", "PAID", harness.PaidWithin)
	said(p, "accounts balance", "doctor")
	p.Stop(t)
	p = harness.LaunchAs(t, config, strings.TrimSpace(string(token)))
	p.AwaitServing(t)
	if after := shop.At(p).Status(t, "first"); after.Status != "PAID" {
		t.Errorf("after a restart the payment is %s", after.Status)
	}
}
