package operations_test

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
	"sync"
	"syscall"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// TestDevStopCrashRestart restarts gerbang dev on one data directory after a stop by Ctrl-C
// and after a crash. On PostgreSQL dev finds or starts its database itself.
func TestDevStopCrashRestart(t *testing.T) {
	t.Parallel()
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: harness.NoURL}
	if dbtest.Engine(t) != database.PostgreSQL {
		s.DatabaseURL = harness.DevDatabase(t)
	}
	p := harness.Start(t, s)
	wantReadyFile(t, p)
	wantPrivate(t, p, "dev.json")
	before := p.Document
	link := p.Shop(harness.Large, "live").Create(t, harness.Fields{"amount": 21000})
	code := p.Shop(harness.Small, "test").Create(t, harness.Fields{"amount": 21001, "type": "qris"})
	refusesASecond(t, p)
	approved := replacePlugin(t, p)
	if err := p.Command.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.StopsWithin, "the end after Ctrl-C", func() bool { return !p.Running() })
	if p.Code != 0 {
		t.Errorf("exit code %d after Ctrl-C", p.Code)
	}

	// After a stop in order.
	p = harness.Start(t, s)
	p.WantSameMerchants(t, before)
	p.WantUpstream(t, 21000, 21001)
	if one, err := p.Plugin(t, "payments"); err != nil || one.SHA256 != approved {
		t.Errorf("started anew it runs %s, want the approved %s: %v", one.SHA256, approved, err)
	}
	p.Pay(t, harness.Fields{"qr_string": code.QRString})
	p.Shop(harness.Small, "test").AwaitStatus(t, code.ExternalID, "PAID", harness.PaidWithin)
	last := p.Shop(harness.Large, "live").Create(t, harness.Fields{"amount": 21002, "type": "qris"})
	provider := p.ProviderPage(t, p.CheckoutURL(link))

	family := p.Kill(t)
	harness.Await(t, harness.GoneWithin, "the end of plugins and simulators after kill -9", func() bool { return len(harness.StillAlive(t, family)) == 0 })

	// After a crash, beside what it may have left of a database server.
	p = harness.Start(t, s)
	p.WantSameMerchants(t, before)
	p.WantUpstream(t, 21000, 21001, 21002)
	if got := p.Shop(harness.Small, "test").Status(t, code.ExternalID); got.Status != "PAID" {
		t.Errorf("PAID became %s by a crash", got.Status)
	}
	for _, pay := range []harness.Fields{{"url": provider}, {"qr_string": last.QRString}} {
		p.Pay(t, pay)
	}
	for _, made := range []harness.Payment{link, last} {
		p.Shop(harness.Large, "live").AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	}
	p.Stop(t)
}

// replacePlugin approves another binary of a plugin while payments are made, goes back and
// forth again, and returns which one is in force.
func replacePlugin(t *testing.T, p *harness.Program) (sha256 string) {
	t.Helper()
	before, err := p.Plugin(t, "payments")
	if err != nil {
		t.Fatal(err)
	}
	binary, err := os.ReadFile(filepath.Join(filepath.Dir(p.Command.Path), "plugins", "payments"))
	if err != nil {
		t.Fatal(err)
	}
	another := filepath.Join(t.TempDir(), "payments")
	if err := os.WriteFile(another, append(binary, '\n'), 0o700); err != nil {
		t.Fatal(err)
	}
	enough, load := make(chan struct{}), sync.WaitGroup{}
	end := sync.OnceFunc(func() { close(enough); load.Wait() })
	defer end()
	var made []int64
	load.Go(func() {
		for amount := int64(30000); ; amount++ {
			select {
			case <-enough:
				return
			default:
			}
			shop := p.Shop(harness.Large, "live")
			if a := shop.Ask(t, "/payments/create", shop.PaymentBody(harness.Fields{"amount": amount})); !a.Success {
				t.Errorf("a payment while the plugin is replaced: %s", a)
				return
			}
			made = append(made, amount)
		}
	})
	runs := func(want string) {
		t.Helper()
		harness.Await(t, harness.ReadyWithin, "the plugin "+want, func() bool {
			one, err := p.Plugin(t, "payments")
			return err == nil && one.Running && one.SHA256 == want
		})
	}
	var approval adminapi.PluginApproval
	p.MustRun(t, "", &approval, "plugin", "approve", another, "--yes", "--untested", "--activate") // it reaches what that one does
	runs(approval.SHA256)
	p.MustRun(t, "", nil, "plugin", "rollback", "payments")
	runs(before.SHA256)
	p.MustRun(t, "", nil, "plugin", "activate", "payments", approval.SHA256[:12])
	runs(approval.SHA256)
	end()
	if approval.SHA256 == before.SHA256 || len(made) == 0 {
		t.Errorf("replaced %s by %s under %d payments", before.SHA256, approval.SHA256, len(made))
	}
	p.WantUpstream(t, made...)
	return approval.SHA256
}

// wantReadyFile holds the ready file against what is documented of it.
func wantReadyFile(t *testing.T, p *harness.Program) {
	t.Helper()
	content, err := os.ReadFile(p.ReadyFile)
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewDecoder(bytes.NewReader(content))
	strict.DisallowUnknownFields()
	var d harness.Document
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
	if len(d.Merchants) != 2 || d.Merchants[harness.Large].Tier != "scale" || d.Merchants[harness.Small].Tier != "starter" {
		t.Errorf("the demo merchants are %+v", d.Merchants)
	}
	for _, m := range d.Merchants {
		if !strings.HasPrefix(m.LiveKey, "sk_live_") || !strings.HasPrefix(m.TestKey, "sk_test_") ||
			!strings.HasPrefix(m.CallbackSecret, "whsec_") || !strings.HasPrefix(m.TestCallbackSecret, "whsec_") || m.CallbackSecret == m.TestCallbackSecret {
			t.Errorf("the secrets of %s are in another form", m.MerchantID)
		}
	}
	if info, err := os.Stat(p.ReadyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("ready file: mode %v, want 0600 (%v)", info.Mode().Perm(), err)
	}
}

// wantPrivate wants a file of the data directory to be its owner's alone, and
// every other file there, too.
func wantPrivate(t *testing.T, p *harness.Program, name string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(p.Data, name)); err != nil {
		t.Error(err)
	}
	err := filepath.WalkDir(p.Data, func(path string, entry fs.DirEntry, err error) error {
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

func refusesASecond(t *testing.T, p *harness.Program) {
	t.Helper()
	second := harness.Launch(t, harness.Settings{Data: p.Data, DatabaseURL: p.DatabaseURL})
	harness.Await(t, harness.StopsWithin, "the end of a second gerbang dev on the same directory", func() bool { return !second.Running() })
	if second.Code == 0 || !strings.Contains(second.Log.String(), "--data") {
		t.Errorf("code %d, log %q; want a refusal that names --data", second.Code, second.Log.Tail(5))
	}
}

func TestDevRefusesPublicAddress(t *testing.T) {
	t.Parallel()
	p := harness.Launch(t, harness.Settings{DatabaseURL: harness.NoURL, Listen: "0.0.0.0:0"})
	harness.Await(t, harness.StopsWithin, "the refusal", func() bool { return !p.Running() })
	if p.Code == 0 || !strings.Contains(p.Log.String(), "--listen") {
		t.Errorf("code %d, log %q; want a refusal that names --listen", p.Code, p.Log.Tail(5))
	}
}

// TestDevOpensOnlyDatabasesItMade: one that another gateway has migrated stays as it is.
func TestDevOpensOnlyDatabasesItMade(t *testing.T) {
	t.Parallel()
	url := harness.ServeDatabase(t)
	p := harness.Launch(t, harness.Settings{DatabaseURL: url, Flags: []string{"--policy-dir", "../../../policy/rego"}})
	harness.Await(t, harness.ReadyWithin, "the refusal", func() bool { return !p.Running() })
	if p.Code == 0 || !strings.Contains(p.Log.String(), "opens only databases that it made") {
		t.Errorf("code %d, log %q; want a refusal", p.Code, p.Log.Tail(5))
	}
	s, err := store.Open(t.Context(), url, store.Options{MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if key, err := s.NameKey(t.Context()); key != nil || err != nil {
		t.Errorf("a key of names was made, %v", err)
	}
}

// TestPastedCommandsWork runs the commands of the banner and of the README, as a
// newcomer pastes them.
func TestPastedCommandsWork(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"bash", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not installed: nobody has pasted the lines", tool)
		}
	}
	p := harness.Start(t, harness.Settings{})
	// The README's lines find the keys in .gerbang, as make run leaves them, and
	// what make build has built in bin.
	home := t.TempDir()
	for name, target := range map[string]string{".gerbang": p.Data, "bin": filepath.Dir(harness.Binary(t))} {
		if err := os.Symlink(target, filepath.Join(home, name)); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range map[string]string{"banner": bannerLines(t, p), "README": readmeLines(t, p)} {
		command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", lines)
		command.Dir, command.Env = home, harness.CleanEnvironment(os.Environ())
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

func bannerLines(t *testing.T, p *harness.Program) string {
	t.Helper()
	var lines []string
	harness.Await(t, harness.ReadyWithin, "the banner", func() bool { // it follows the ready file
		lines = nil
		for _, found := range pasteable.FindAllStringSubmatch(p.Out.String(), -1) {
			lines = append(lines, found[1])
		}
		return len(lines) >= 5
	})
	return strings.Join(lines, "\n")
}

func readmeLines(t *testing.T, p *harness.Program) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(harness.Root, "README.md"))
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
