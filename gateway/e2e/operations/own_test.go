package operations_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// A plugin that gerbang plugin new has written is served by gerbang dev before the shipped
// one of the same contract, whose payments go on, and what is built anew is swapped in without a restart. In the long tier
// it asks for another credential, and is served from its file again after a restart.
func TestDevRunsAPluginOfOnesOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "warung")
	if out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "new", "warung", "--implements", "payments", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build(t, dir)
	settings := harness.Settings{Data: harness.DataDir(t), DatabaseURL: harness.DevDatabase(t)}
	p := harness.Start(t, settings)
	of := p.Shop(harness.Large, "test").Create(t, harness.Fields{"amount": 30999, "type": "qris"})
	p.Stop(t)
	settings.Flags = []string{"--plugin", filepath.Join(dir, "warung")}
	p = harness.Start(t, settings)
	p.Pay(t, harness.Fields{"qr_string": of.QRString})
	p.Shop(harness.Large, "test").AwaitStatus(t, of.ExternalID, "PAID", harness.PaidWithin) // the shipped one still serves it
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

	anotherVersion(t, dir, `"0.1.0"`, `"0.2.0"`)
	harness.Await(t, harness.ReadyWithin, "the plugin that was built anew", func() bool {
		plugin, err := p.Plugin(t, "warung")
		return err == nil && plugin.Running && plugin.Version == "0.2.0"
	})
	s.Create(t, harness.Fields{"amount": 31001, "type": "qris"})

	version := "0.2.0"
	if tier.IsLong() {
		asksForMore(t, p, dir)
		version = "0.2.1"
	}

	// What is approved runs until dev is started with the file again.
	p.MustRun(t, "", nil, "plugin", "approve", filepath.Join(dir, "warung"), "--untested", "--yes", "--activate")
	wantCode("an approved one", string(s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": 31005})).Data))
	anotherVersion(t, dir, `"`+version+`"`, `"0.3.0"`)
	harness.Await(t, harness.ReadyWithin, "a word about the file that is not used", func() bool { return strings.Contains(p.Log.String(), "an approval of it is in force") })
	if plugin, err := p.Plugin(t, "warung"); err != nil || plugin.Version != version {
		t.Errorf("%+v, %v; want the approved one", plugin, err)
	}
	if !tier.IsLong() {
		return
	}
	p.Stop(t)
	p = harness.Start(t, settings)
	if plugin, err := p.Plugin(t, "warung"); err != nil || plugin.Version != "0.3.0" || plugin.Approval.State != "configured" {
		t.Errorf("%+v, %v; want the file", plugin, err)
	}
}

// asksForMore has a plugin ask for another credential: the demo merchants are connected
// anew, or what hinders that is told, and so is that another provider gets a payment.
func asksForMore(t *testing.T, p *harness.Program, dir string) {
	t.Helper()
	s := p.Shop(harness.Large, "test")
	served := func(amount int64) bool {
		t.Helper()
		a := s.Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": amount}))
		if !a.Success {
			t.Errorf("a payment of %d: %s", amount, a)
		}
		return strings.Contains(string(a.Data), `"payment_code":"`)
	}
	told := func(what string, words ...string) {
		t.Helper()
		harness.Await(t, harness.ReadyWithin, what, func() bool {
			return slices.ContainsFunc(strings.Split(p.Log.String(), "\n"), func(line string) bool {
				return !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) })
			})
		})
	}
	manifest, account := filepath.Join(dir, "manifest.json"), filepath.Join(dir, "account.go")
	edit(t, manifest, `"required": ["api_key",`, `"required": ["api_key", "shop",`)
	edit(t, manifest, `"properties": {`, `"properties": {"shop": {"type": "string", "description": "The shop's number."},`)
	edit(t, account, "given struct {", "given struct {\nShop string `json:\"shop\"`")
	edit(t, account, `given.Key == ""`, `given.Shop == "" || given.Key == ""`)
	build(t, dir)
	told("a word about what the simulator does not give", `"level":"ERROR"`, "have its simulator's connect answer what the manifest's connection asks for", "credentials.shop")
	if served(31002) {
		t.Error("it serves without a credential that it needs")
	}
	edit(t, filepath.Join(dir, "sandbox", "sandbox.go"), `"api_key": apiKey,`, `"api_key": apiKey, "shop": "7",`)
	edit(t, manifest, `"version": "0.2.0"`, `"version": "0.2.1"`)
	build(t, dir)
	harness.Await(t, harness.ReadyWithin, "a payment by the plugin that asks for more", func() bool { return served(31003) })

	p.MustRun(t, "", nil, "connection", "pause", s.MerchantID, "warung", "--mode", "test", "--reason", "to see")
	if served(31004) {
		t.Error("it serves while it is paused")
	}
	told("a warning that it was passed over", `"level":"WARN"`, `"msg":"provider passed over"`, `"provider":"warung"`)
	p.MustRun(t, "", nil, "connection", "resume", s.MerchantID, "warung", "--mode", "test", "--reason", "seen")
}

// TestAProviderOfAKindOfItsOwn builds a plugin with a path that no other has.
func TestAProviderOfAKindOfItsOwn(t *testing.T) { //nolint:tparallel // its parts take turns on one gateway
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "kurs")
	if out, err := exec.CommandContext(t.Context(), harness.Binary(t), "plugin", "new", "kurs", "--kind", "query", "--dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	build(t, dir)
	t.Run("is approved while the gateway runs", func(t *testing.T) { newProviderIsApproved(t, dir) })
	t.Run("a second one of its path is down", func(t *testing.T) { twoOfOnePath(t, dir) })
}

// twoOfOnePath: of two plugins in the configuration that offer the same path the first
// is served, and nothing else is hurt; the other one is down, and an exception says why.
func twoOfOnePath(t *testing.T, kurs string) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "tuka")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	patch(t, filepath.Join(kurs, "kurs"), filepath.Join(other, "tuka"), `"name": "kurs"`, `"name": "tuka"`)
	d := harness.NewDeployment(t)
	var beside []string
	for name, dir := range map[string]string{"kurs": kurs, "tuka": other} {
		beside = append(beside, harness.ApproveAt(t, filepath.Join(dir, name)).Beside())
	}
	slices.Sort(beside) // kurs first
	p := d.Launch(t, harness.ServeDatabase(t), d.Approved, beside...)
	d.Join(t, p)
	s := d.NewShop(t, p, "growth")
	s.Create(t, harness.Fields{"amount": 20001})
	if a := s.Ask(t, "/kurs/rate", harness.Fields{"currency": "USD"}); a.Code != fault.NoConnection {
		t.Errorf("the first one: %s", a)
	}
	p.AwaitException(t, harness.ReadyWithin, movement.ReasonPlugin, "plugin tuka", "both offer /kurs/rate")
	if one, err := p.Plugin(t, "kurs"); err != nil || !one.Running {
		t.Errorf("the first one: %+v, %v", one, err)
	}
}

// newProviderIsApproved: a provider that no configuration names is in force within
// seconds of its approval, is called and described without a restart, and is gone once it
// is removed. The others are called as before.
func newProviderIsApproved(t *testing.T, dir string) {
	t.Helper()
	p := harness.Shared(t)
	s := p.Of(harness.NewMerchant(t, p, "payments"), "test")
	ask := func() harness.Answer { return s.Ask(t, "/kurs/rate", harness.Fields{"currency": "USD"}) }
	described := func() bool {
		response, err := http.Get(p.APIURL + "/openapi.json") //nolint:noctx // a test of a program of its own
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var document struct{ Paths map[string]any }
		if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
			t.Fatal(err)
		}
		return document.Paths["/kurs/rate"] != nil
	}
	if a := ask(); a.Code != fault.NotFound || described() {
		t.Errorf("before: %s", a)
	}
	p.MustRun(t, "", nil, "plugin", "approve", filepath.Join(dir, "kurs"), "--untested", "--yes", "--activate")
	harness.Await(t, harness.ReadyWithin, "the path of the new provider", described)
	if a := ask(); !a.Success { // by its simulator, which nobody had to connect
		t.Errorf("in force: %s", a)
	}
	p.MustRun(t, "", nil, "connection", "pause", s.MerchantID, "kurs", "--mode", "test", "--reason", "it goes")
	harness.Await(t, harness.ReadyWithin, "a removal that all replicas know of", func() bool {
		_, err := p.Run(t, "connection", "remove", s.MerchantID, "kurs", "--mode", "test", "--yes")
		return err == nil
	})
	p.MustRun(t, "", nil, "plugin", "remove", "kurs")
	harness.Await(t, harness.ReadyWithin, "the end of the path", func() bool { return !described() })
	if a := ask(); a.Code != fault.NotFound {
		t.Errorf("removed: %s", a)
	}
	s.Create(t, harness.Fields{"amount": 31002, "type": "qris"})
}

// anotherVersion is what building the plugin with another version in its manifest makes, without the time that linking
// takes: the manifest lies in the binary.
func anotherVersion(t *testing.T, dir, was, becomes string) {
	t.Helper()
	edit(t, filepath.Join(dir, "manifest.json"), was, becomes)
	binary := filepath.Join(dir, filepath.Base(dir))
	patch(t, binary, binary+".new", was, becomes)
	if err := os.Rename(binary+".new", binary); err != nil {
		t.Fatal(err)
	}
}

// patch copies a binary with one text replaced by another of its length.
func patch(t *testing.T, from, to, was, becomes string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if len(was) != len(becomes) || bytes.Count(content, []byte(was)) != 1 {
		t.Fatalf("%s has %q %d times", from, was, bytes.Count(content, []byte(was)))
	}
	if err := os.WriteFile(to, bytes.Replace(content, []byte(was), []byte(becomes), 1), 0o700); err != nil {
		t.Fatal(err)
	}
}

func edit(t *testing.T, file, was, becomes string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil && !bytes.Contains(text, []byte(was)) {
		t.Fatalf("%s has no %s", file, was)
	}
	if err == nil {
		err = os.WriteFile(file, bytes.ReplaceAll(text, []byte(was), []byte(becomes)), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func build(t *testing.T, dir string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Base(dir), ".")
	command.Dir, command.Env = dir, append(os.Environ(), "GOFLAGS=-mod=readonly -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
