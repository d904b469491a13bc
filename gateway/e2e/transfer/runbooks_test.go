package transfer_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestRunbooks runs each command of the runbooks, from the first line to the last, with a transfer that nobody can end, a receiver that
// fails, a plugin and a policy that replaced others, and a token that is known.
func TestRunbooks(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(harness.Root, "deploy", "RUNBOOKS.md"))
	if err != nil {
		t.Fatal(err)
	}
	d := harness.NewDeploymentOf(t, "wallet1", "--careless")
	ppob := d.Another(t, "ppob") // whose deposit is the platform's
	if err := os.Symlink(d.Approved.Path, filepath.Join(d.Dir, d.Approved.SHA256)); err != nil {
		t.Fatal(err)
	}
	p := d.Launch(t, harness.ServeDatabase(t), d.Approved, ppob.Approved.Beside(), "plugins_dir: "+d.Dir)
	d.Join(t, p)
	s := d.NewShop(t, p, "growth")
	if _, err := adminapi.SetCallbackURL.Call(t.Context(), p.Admin(), adminapi.CallbackURL{Merchant: s.MerchantID, Mode: "live", URL: new("https://closed.example/")}); err != nil {
		t.Fatal(err)
	}
	wrong, references, unclear := make([]string, 3), make([]string, 3), make([]transfer, 3)
	for i := range wrong {
		references[i], unclear[i] = harness.NewReference(), toBank.withPlan(alwaysWrong)
		wrong[i] = sends(t, s, unclear[i], references[i], "Pending").id()
	}
	for i, reference := range references {
		awaitUnknown(t, s, unclear[i], reference)
	}
	m := toBank.newTransfer()
	a := s.Ask(t, m.path, m.body(""))
	m.wantAnswer(t, a, "", "Success")

	dir := t.TempDir()
	words := map[string]string{"WHY": "a drill", "MERCHANT": s.MerchantID, "SUBJECT": wrong[0], "REQUEST_ID": a.Header.Get("X-Request-Id"), "NAME": "watcher", "URL": p.DatabaseURL}
	before := map[string]func(){ // what a command needs, beside its words
		"plugin rollback": func() {
			p.MustRun(t, "", nil, "plugin", "approve", d.Approved.Path, "--untested", "--yes", "--activate")
		},
		"policy rollback": func() {
			changed := filepath.Join(dir, "policy")
			if err := os.MkdirAll(changed, 0o700); err != nil {
				t.Fatal(err)
			}
			writePolicy(t, changed)
			p.MustRun(t, "", nil, "policy", "push", changed, "--message", "limits", "--activate")
		},
		"operator token rotate": func() { p.MustRun(t, "", nil, "operator", "token", "create", "--name", "watcher", "--role", "read") },
		"connection set": func() {
			var opened struct{ Credentials json.RawMessage }
			if status := ppob.Simulator().Sandbox(t, "/connect", harness.Fields{"merchant": "platform", "mode": "live"}, &opened); status != http.StatusOK {
				t.Fatalf("connect: %d", status)
			}
			words["PROVIDER"], words["FILE"] = "ppob", filepath.Join(dir, "account.json")
			if err := os.WriteFile(words["FILE"], opened.Credentials, 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"audit verify": func() {
			out, err := p.Run(t, "audit", "export")
			if err != nil {
				t.Fatal(err)
			}
			words["/var/log/gerbang/audit.jsonl"] = filepath.Join(dir, "audit.jsonl")
			if err := os.WriteFile(words["/var/log/gerbang/audit.jsonl"], []byte(out), 0o600); err != nil {
				t.Fatal(err)
			}
		},
		"check": func() {
			configs, err := filepath.Glob(filepath.Join(d.Dir, "*.yaml"))
			if err != nil || len(configs) != 1 {
				t.Fatalf("%q, %v", configs, err)
			}
			words["FILE"] = configs[0]
		},
		"exception resolve": func() {
			open, err := adminapi.ListExceptions.Call(t.Context(), p.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
			i := slices.IndexFunc(open, func(e adminapi.Exception) bool { return strings.ReplaceAll(e.Subject, "-", "") != wrong[2] })
			if err != nil || i < 0 {
				t.Fatalf("exceptions: %v, %v", open, err)
			}
			words["ID"] = open[i].ID
		},
		"transfer": func() { words["ID"] = wrong[2] },
	}
	shows := map[string]string{ // what must be seen then
		"replica list": "live", "traffic": "wallet1", "plugin list": "wallet1", "exception list": "amount_differs", "find": s.MerchantID, "transfer list": wrong[2][:8],
		"transfer show": wrong[2], "waiting": "override as success", "connection list": "a drill", "callback list": "transfer.status_update", "policy list": "active",
	}
	word := regexp.MustCompile(`"[^"]*"|\S+`)
	for _, found := range regexp.MustCompile("(?m)^gerbang (.*)$|`gerbang ([^`]*)`").FindAllStringSubmatch(string(text), -1) {
		line, _, _ := strings.Cut(found[1]+found[2], " # ")
		words["PROVIDER"] = "wallet1"
		for prefix, prepare := range before {
			if strings.HasPrefix(line, prefix) {
				prepare()
			}
		}
		args := word.FindAllString(line, -1)
		for i, arg := range args {
			args[i] = strings.Trim(arg, `"`)
			if value, named := words[args[i]]; named {
				args[i] = value
			}
		}
		if strings.HasPrefix(line, "exception resolve") || strings.HasPrefix(line, "transfer override") || strings.HasPrefix(line, "operator token revoke") {
			args = append(args, "--yes") // as the operator says who is asked at the terminal
		}
		out, err := p.Run(t, args...)
		if failed := strings.HasPrefix(line, "callback verify"); (err != nil) != failed { // of a receiver that isn't there
			t.Errorf("gerbang %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		for prefix, part := range shows {
			if strings.HasPrefix(line, prefix) && !strings.Contains(out, part) {
				t.Errorf("gerbang %s does not show %q:\n%s", strings.Join(args, " "), part, out)
			}
		}
	}
}
