package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// TestLifecycle follows one data directory through a stop, a crash and what
// comes after each.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	s := settings{data: dataDir(t), databaseURL: dbtest.New(t, "", nil)}
	p := start(t, s)
	p.wantReadyFile(t)
	p.wantPrivate(t, "dev.json")
	before := p.document
	link := p.shop(large, "live").create(t, fields{"amount": 21000})
	code := p.shop(small, "test").create(t, fields{"amount": 21001, "type": "qris"})
	p.refusesASecond(t)
	p.stop(t)

	// After a stop in order.
	p = start(t, s)
	p.wantSameMerchants(t, before)
	p.wantUpstream(t, 21000, 21001)
	p.pay(t, fields{"qr_string": code.QRString})
	p.shop(small, "test").becomes(t, code.ExternalID, "PAID", paidWithin)
	last := p.shop(large, "live").create(t, fields{"amount": 21002, "type": "qris"})
	provider := p.providersPage(t, p.checkoutOf(link))

	family := p.kill(t)
	await(t, goneWithin, "the end of plugins and simulators after kill -9", func() bool { return len(stillAlive(t, family)) == 0 })

	// After a crash.
	p = start(t, s)
	p.wantSameMerchants(t, before)
	p.wantUpstream(t, 21000, 21001, 21002)
	if got := p.shop(small, "test").status(t, code.ExternalID); got.Status != "PAID" {
		t.Errorf("PAID became %s by a crash", got.Status)
	}
	for _, pay := range []fields{{"url": provider}, {"qr_string": last.QRString}} {
		p.pay(t, pay)
	}
	for _, made := range []payment{link, last} {
		p.shop(large, "live").becomes(t, made.ExternalID, "PAID", paidWithin)
	}
	p.stop(t)
}

// wantReadyFile holds the ready file against what is documented of it.
func (p *program) wantReadyFile(t *testing.T) {
	t.Helper()
	content, err := os.ReadFile(p.readyFile)
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	var d document
	if err := strict.Decode(&d); err != nil {
		t.Errorf("ready file: %v", err)
	}
	missing := func(v reflect.Value, where string) {
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("ready file: %s%s is empty", where, v.Type().Field(i).Tag.Get("json"))
			}
		}
	}
	missing(reflect.ValueOf(d), "")
	for i, m := range d.Merchants {
		missing(reflect.ValueOf(m), fmt.Sprintf("merchants[%d].", i))
	}
	if len(d.Merchants) != 2 || d.Merchants[large].Tier != "scale" || d.Merchants[small].Tier != "starter" {
		t.Errorf("the demo merchants are %+v", d.Merchants)
	}
	for _, m := range d.Merchants {
		if !strings.HasPrefix(m.LiveKey, "sk_live_") || !strings.HasPrefix(m.TestKey, "sk_test_") ||
			!strings.HasPrefix(m.CallbackSecret, "whsec_") || !strings.HasPrefix(m.TestCallbackSecret, "whsec_") || m.CallbackSecret == m.TestCallbackSecret {
			t.Errorf("the secrets of %s are in another form", m.MerchantID)
		}
	}
	if info, err := os.Stat(p.readyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ready file: mode %v, want 0600 (%v)", info.Mode().Perm(), err)
	}
}

// wantPrivate wants a file of the data directory to be its owner's alone, and
// every other file there, too.
func (p *program) wantPrivate(t *testing.T, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(p.data, name)); err != nil {
		t.Error(err)
	}
	err := filepath.WalkDir(p.data, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: mode %v, others may read it", path, info.Mode().Perm())
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func (p *program) refusesASecond(t *testing.T) {
	t.Helper()
	second := launch(t, settings{data: p.data, databaseURL: p.DatabaseURL})
	await(t, stopsWithin, "the end of a second gerbang dev on the same directory", func() bool { return !second.running() })
	if second.code == 0 || !strings.Contains(second.log.String(), "--data") {
		t.Errorf("code %d, log %q; want a refusal that names --data", second.code, second.log.tail(5))
	}
}

func (p *program) wantSameMerchants(t *testing.T, before document) {
	t.Helper()
	if !reflect.DeepEqual(p.Merchants, before.Merchants) || p.AdminToken != before.AdminToken {
		t.Error("keys, secrets or the admin token are others than before")
	}
}

// checkoutOf is the page of a payment, which moves with the program's port.
func (p *program) checkoutOf(made payment) string {
	return p.APIURL + made.CheckoutURL[strings.Index(made.CheckoutURL, "/checkout/"):]
}

func TestRefusesTheWorld(t *testing.T) {
	t.Parallel()
	p := launch(t, settings{databaseURL: noURL, listen: "0.0.0.0:0"})
	await(t, stopsWithin, "the refusal", func() bool { return !p.running() })
	if p.code == 0 || !strings.Contains(p.log.String(), "--listen") {
		t.Errorf("code %d, log %q; want a refusal that names --listen", p.code, p.log.tail(5))
	}
}

// TestOwnDatabase lets the program find or start its database itself.
func TestOwnDatabase(t *testing.T) {
	t.Parallel()
	onPostgreSQL(t)
	s := settings{data: dataDir(t), databaseURL: noURL}
	p := start(t, s)
	made := p.shop(large, "live").create(t, fields{"amount": 22000, "type": "qris"})
	p.command.Process.Signal(syscall.SIGINT) // Ctrl-C, which the next stop finds done
	await(t, stopsWithin, "the end after Ctrl-C", func() bool { return !p.running() })
	if p.code != 0 {
		t.Errorf("exit code %d after Ctrl-C", p.code)
	}

	p = start(t, s)
	if got := p.shop(large, "live").status(t, made.ExternalID); got.Status != "PENDING" {
		t.Errorf("got %+v", got)
	}
	p.kill(t)
	p = start(t, s) // beside what the crash may have left of the old server
	p.pay(t, fields{"qr_string": made.QRString})
	p.shop(large, "live").becomes(t, made.ExternalID, "PAID", paidWithin)
	p.stop(t)
}

// TestLinesToPaste runs the banner's and the README's lines as a newcomer does.
func TestLinesToPaste(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: nobody has pasted the lines", tool)
		}
	}
	p := start(t, settings{})
	// The README's lines find the keys in .gerbang, as make run leaves them, and
	// what make build has built in bin.
	home := t.TempDir()
	for name, target := range map[string]string{".gerbang": p.data, "bin": filepath.Dir(binary(t))} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range map[string]string{"banner": p.bannersLines(t), "README": p.readmesLines(t)} {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", lines)
		command.Dir, command.Env = home, clean(os.Environ())
		out, err := command.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s\n%s", name, err, lines, out)
			continue
		}
		for _, want := range []string{`"qr_string":"`, `"checkout_url":"`, `"status":"PAID"`, `"status":"Pending"`, `"status":"Success"`} {
			if !bytes.Contains(out, []byte(want)) {
				t.Errorf("%s: %s is missing in\n%s\nfrom\n%s", name, want, out, lines)
			}
		}
		if bytes.Contains(out, []byte(`"success":false`)) {
			t.Errorf("%s: something was refused:\n%s", name, out)
		}
	}
}

var shellBlock = regexp.MustCompile("(?s)```sh\n(.*?)```")

var pasteable = regexp.MustCompile(`(?m)^\s+((?:export|curl) .*)$`)

func (p *program) bannersLines(t *testing.T) string {
	t.Helper()
	var lines []string
	await(t, readyWithin, "the banner", func() bool { // it follows the ready file
		lines = nil
		for _, found := range pasteable.FindAllStringSubmatch(p.out.String(), -1) {
			lines = append(lines, found[1])
		}
		return len(lines) >= 5
	})
	return strings.Join(lines, "\n")
}

func (p *program) readmesLines(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "## Try it\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var lines strings.Builder
	for _, block := range shellBlock.FindAllStringSubmatch(section, -1) {
		lines.WriteString(block[1])
	}
	if lines.Len() == 0 {
		t.Fatal("the README has no lines to try it")
	}
	return strings.NewReplacer("http://127.0.0.1:8080", p.APIURL, "http://127.0.0.1:8082", p.SandboxURL).Replace(lines.String())
}
