package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/confine"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/judge"
	"github.com/seed-f006e74d/gerbang/policy"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestMain makes the test binary a plugin, too: a host starts one under a name
// of this form and with an environment of its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == confine.Command || os.Args[1] == judge.Command) || filepath.Base(os.Args[0]) == "gerbang" { // as shells ask it
		os.Exit((&program{in: os.Stdin, out: os.Stdout, err: os.Stderr}).run(context.Background(), os.Args[1:]))
	}
	if strings.HasSuffix(os.Args[0], "plugins/liar") { // as a simulator it leads elsewhere
		ready := os.Args[slices.Index(os.Args, "--ready-file")+1]
		if err := os.WriteFile(ready, []byte(`{"url":"http://127.0.0.1:1"}`), 0o600); err != nil {
			panic(err)
		}
		<-time.After(time.Minute)
	}
	if strings.HasSuffix(os.Args[0], "plugins/bank") {
		if len(os.Args) > 1 && os.Args[1] == "sandbox" {
			os.Exit(bankSandbox().Main(os.Args[2:]))
		}
		sdk.Serve([]byte(bank), sdk.Handlers{
			Calls: map[string]func(context.Context, sdk.Call) sdk.Result{
				"/bank/name": func(_ context.Context, c sdk.Call) sdk.Result {
					if reachesMuch() || strings.Contains(string(c.Connection.Credentials), "much") {
						return sdk.Result{}
					}
					return sdk.Result{Outcome: sdk.Done, Data: json.RawMessage(`{}`)}
				},
			},
		})
	}
	dbtest.Main(m)
}

// reachesMuch reports whether this process reads files that are neither its own nor what
// every program needs.
func reachesMuch() bool {
	_, err := os.ReadFile("/etc/passwd")
	return err == nil
}

const bank = `{
  "manifest": 1, "name": "bank", "version": "1.2.3", "title": "A bank", "connection": {"type": "object"},
  "operations": [{
    "path": "/bank/name", "kind": "query", "summary": "Tell a name", "timeout": "5s",
    "request": {"type": "object"}, "result": {"type": "object"}, "response": {"type": "object"}
  }]
}`

const token = "operator-token-0123456789abcdef0123456789"

// typed is a program run by a test.
type typed struct {
	program
	output, errors bytes.Buffer
}

// run runs gerbang with arguments in an environment and returns its exit code.
func run(t *testing.T, environment map[string]string, input string, args ...string) (int, *typed) {
	t.Helper()
	p := &typed{}
	p.program = program{
		in: strings.NewReader(input), out: &p.output, err: &p.errors,
		getenv: func(name string) string { return environment[name] },
	}
	code := p.run(t.Context(), args)
	if code == exitOK && p.json {
		holdPrinted(t, p.output.Bytes(), args)
	}
	return code, p
}

// request is what a fake console was asked.
type request struct{ method, path, body string }

// fakeConsole answers everything with one answer and remembers the requests.
type fakeConsole struct {
	mu       sync.Mutex
	requests []request
	status   int
	answers  []string // the last one again and again
	url      string
}

func newConsole(t *testing.T, status int, answers ...string) *fakeConsole {
	t.Helper()
	f := &fakeConsole{status: status, answers: answers}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || strings.HasPrefix(r.URL.Path, "/admin/") && r.Header.Get("Authorization") != "Bearer "+token {
			t.Errorf("authorization %q, %v", r.Header.Get("Authorization"), err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests = append(f.requests, request{r.Method, r.URL.RequestURI(), string(body)})
		w.WriteHeader(f.status)
		_, _ = io.WriteString(w, f.answers[min(len(f.requests), len(f.answers))-1])
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

func (f *fakeConsole) environment() map[string]string {
	return map[string]string{adminURLVariable: f.url + "/", adminTokenVariable: token}
}

// adminCommand is a command that reaches a running gateway: what it asks, and
// what it prints.
type adminCommand struct {
	args, answer, method, path, body, prints string
	input                                    string
}

var adminCommands = map[string]adminCommand{
	"merchant create": {
		args:   `merchant create|Toko Maju|--tier|growth|--label|city=Malang`,
		answer: `{"merchant_id":"mer_1","name":"Toko Maju","live_key":"sk_live_x","callback_secret":"whsec_x"}`,
		method: "POST", path: "/admin/merchants", body: `{"name":"Toko Maju","tier":"growth","labels":{"city":"Malang"}}`,
		prints: "live_key              sk_live_x\n",
	},
	"merchant suspend": {
		args: `merchant suspend|mer_1|--reason|unpaid`, answer: `{"merchant_id":"mer_1","status":"suspended"}`,
		method: "POST", path: "/admin/merchants/mer_1/suspend", body: `{"reason":"unpaid"}`, prints: "suspended",
	},
	"merchant resume": {
		args: `merchant resume|mer_1`, answer: `{"merchant_id":"mer_1","status":"active"}`,
		method: "POST", path: "/admin/merchants/mer_1/resume", body: `{}`, prints: "active",
	},
	"merchant tier": {
		args: `merchant tier|mer_1|scale`, answer: `{"merchant_id":"mer_1","tier":"scale"}`,
		method: "POST", path: "/admin/merchants/mer_1/tier", body: `{"tier":"scale"}`, prints: "scale",
	},
	"merchant show": {
		args: `merchant show|mer/1`,
		answer: `{"merchant_id":"mer/1","keys":[{"key_id":"k1","mode":"live","scopes":["read","collect"]}],
			"connections":[{"provider":"bank","mode":"test","notify_url":"https://api.example.com/notify/bank/t"}]}`,
		method: "GET", path: "/admin/merchants/mer%2F1", prints: "k1    live  ended  read,collect",
	},
	"merchant audit": {
		args: `merchant audit|mer_1|--since|2026-01-01T00:00:00Z|--action|key.|--operator|ayu`, answer: `[{"operator":"ayu","action":"key.revoke","from":"192.0.2.7","times":2,"detail":"key k1","at":"2026-01-02T03:04:05Z"}]`,
		method: "GET", path: "/admin/merchants/mer_1/audit?action=key.&limit=200&operator=ayu&since=2026-01-01T00%3A00%3A00Z", prints: "2026-01-02T03:04:05Z  ayu       192.0.2.7  key.revoke ×2  key k1",
	},
	"key create": {
		args: `key create|mer_1|--mode|test|--scope|read,collect|--ip|192.0.2.1`, answer: `{"key_id":"k2","secret_key":"sk_test_x"}`,
		method: "POST", path: "/admin/merchants/mer_1/keys", body: `{"mode":"test","scopes":["read","collect"],"ips":["192.0.2.1"]}`,
		prints: "secret_key  sk_test_x\n",
	},
	"key rotate": {
		args: `key rotate|mer_1|k1|--overlap|0s|--yes`, answer: `{"key_id":"k2","secret_key":"sk_test_x"}`,
		method: "POST", path: "/admin/merchants/mer_1/keys/k1/rotate", body: `{"overlap":"0s"}`, prints: "sk_test_x",
	},
	"key revoke": {
		args: `key revoke|mer_1|k1|--reason|leaked|--yes`, answer: `{"key_id":"k1","revoked_at":"2026-01-02T03:04:05Z"}`,
		method: "POST", path: "/admin/merchants/mer_1/keys/k1/revoke", body: `{"reason":"leaked"}`, prints: "revoked  2026-01-02T03:04:05Z",
	},
	"connection set": {
		args: `connection set|mer_1|bank|--mode|live|--credentials-file|-`, input: `{"api_key": "k-secret"}`,
		answer: `{"provider":"bank","version":2,"notify_url":"https://api.example.com/notify/bank/t"}`,
		method: "PUT", path: "/admin/merchants/mer_1/connections/bank",
		body:   `{"mode":"live","credentials":{"api_key":"k-secret"}}`,
		prints: "notify_url  https://api.example.com/notify/bank/t",
	},
	"connection set, unverified": {
		args: `connection set|mer_1|bank|--mode|live|--unverified|--credentials-file|-`, input: `{"api_key":"k-secret"}`,
		answer: `{"provider":"bank","verified":"unverified"}`, method: "PUT", path: "/admin/merchants/mer_1/connections/bank",
		body: `{"mode":"live","unverified":true,"credentials":{"api_key":"k-secret"}}`, prints: "verified    unverified\n",
	},
	"connection set, verified": {
		args: `connection set|mer_1|bank|--mode|live|--credentials-file|-`, input: `{"api_key":"k-secret"}`,
		answer: `{"provider":"bank","verified":"yes","account":"Toko\u001b[2J"}`, method: "PUT", path: "/admin/merchants/mer_1/connections/bank",
		body: `{"mode":"live","credentials":{"api_key":"k-secret"}}`, prints: "account     Toko·[2J\n",
	},
	"connection set of the platform": {
		args: `connection set|platform|ppob|--mode|live|--owner|platform|--credentials-file|-`, input: `{"username":"u"}`,
		answer: `{"provider":"ppob","owner":"platform"}`, method: "PUT", path: "/admin/merchants/platform/connections/ppob",
		body: `{"mode":"live","owner":"platform","credentials":{"username":"u"}}`, prints: "owner       platform\n",
	},
	"callback list": {
		args:   `callback list|mer_1|--mode|live|--state|dead|--since|2026-01-02T03:04:05Z|--limit|5`,
		answer: `[{"event_id":"e1","event":"payments.status_update","state":"dead","tries":40,"reference":"INV 1","created_at":"2026-01-02T03:04:05Z"}]`,
		method: "GET", path: "/admin/merchants/mer_1/callbacks?limit=5&mode=live&since=2026-01-02T03%3A04%3A05Z&state=dead",
		prints: `dead   40     -    "INV 1"`,
	},
	"callback show": {
		args: `callback show|mer_1|e1|--mode|test`,
		answer: `{"event_id":"e1","state":"gone","body":{"event":"callback.test"},
			"attempts":[{"at":"2026-01-02T03:04:05Z","duration_ms":12,"status":410,"outcome":"gone","fault":"answered 410","answer":"no\nmore"}]}`,
		method: "GET", path: "/admin/merchants/mer_1/callbacks/e1?mode=test", prints: `12 ms  gone  410  answered 410  "no\nmore"`,
	},
	"callback resend": {
		args: `callback resend|mer_1|e1|--mode|test`, answer: `{"resent":1}`,
		method: "POST", path: "/admin/merchants/mer_1/callbacks/resend", body: `{"mode":"test","event_id":"e1"}`, prints: "resent  1\n",
	},
	"callback test": {
		args: `callback test|mer_1|--mode|test|--url|https://shop.example.com/cb`, answer: `{"event_id":"e1","url":"https://shop.example.com/cb"}`,
		method: "POST", path: "/admin/merchants/mer_1/callbacks/test", body: `{"mode":"test","url":"https://shop.example.com/cb"}`,
		prints: "event_id  e1\n",
	},
	"callback verify": {
		args: `callback verify|mer_1|--mode|test`, answer: `{"url":"https://shop.example.com/cb","verifies":true,"signed":{"status":204},"forged":{"status":401,"answer":"no"}}`,
		method: "POST", path: "/admin/merchants/mer_1/callbacks/verify", body: `{"mode":"test"}`, prints: "forged    401  \"no\"\n",
	},
	"callback url": {
		args: `callback url|mer_1|https://shop.example.com/cb|--mode|live`, answer: `{"mode":"live","url":"https://shop.example.com/cb","rotation":"none"}`,
		method: "PUT", path: "/admin/merchants/mer_1/callbacks/url", body: `{"mode":"live","url":"https://shop.example.com/cb"}`,
		prints: "url       https://shop.example.com/cb\n",
	},
	"callback url clear": {
		args: `callback url|mer_1|--mode|live|--clear`, answer: `{"mode":"live","rotation":"none"}`,
		method: "PUT", path: "/admin/merchants/mer_1/callbacks/url", body: `{"mode":"live","url":""}`, prints: "rotation  none\n",
	},
	"callback secret rotate": {
		args: `callback secret|rotate|mer_1|--mode|live`, answer: `{"mode":"live","rotation":"prepared","callback_secret":"whsec_x"}`,
		method: "POST", path: "/admin/merchants/mer_1/callbacks/secret", body: `{"action":"rotate","mode":"live"}`,
		prints: "callback_secret  whsec_x\n",
	},
	"plugin confirm": {
		args: `plugin confirm|a-1`, answer: `{"provider":"bank","version":"1.2.3","sha256":"cc","approved_by":"ayu","confirmed_by":"budi"}`,
		method: "POST", path: "/admin/plugin-approvals/a-1/confirm", body: `{}`, prints: "confirmed by:     budi\n",
	},
	"exception list": {
		args: `exception list`, answer: `[{"merchant_id":"mer_1","subject":"inv-1","reason":"amount_differs","detail":"paid 5"}]`,
		method: "GET", path: "/admin/exceptions?limit=1000", prints: "amount_differs  -     ",
	},
	"exception resolve": {
		args:   `exception resolve|--merchant|mer_1|--mode|live|--subject|inv-1|--reason|amount_differs|--resolution|refunded|--yes`,
		answer: `{}`, method: "POST", path: "/admin/exceptions/resolve",
		body:   `{"merchant_id":"mer_1","mode":"live","subject":"inv-1","reason":"amount_differs","resolution":"refunded"}`,
		prints: "resolved  inv-1",
	},
	"connection fields": {
		args: `connection fields|bank`,
		answer: `[{"name":"api_key","required":true,"secret":true,"title":"API key","description":"as the portal shows it","example":"\"k-0123\""},
			{"name":"region","choices":["jkt","sub"]}]`,
		method: "GET", path: "/admin/plugins/bank/connection-fields", prints: `api_key  required  secret  -         "k-0123"  API key: as the portal shows it`,
	},
	"operator token create": {
		args:   `operator token|create|--name|sari|--role|finance|--expires|720h`,
		answer: `{"name":"sari","role":"finance","expires_at":"2026-02-01T03:04:05Z","token":"op_x"}`,
		method: "POST", path: "/admin/operator-tokens", body: `{"name":"sari","role":"finance","expires":"720h0m0s"}`, prints: "token    op_x\n",
	},
	"operator token list": {
		args: `operator token|list`, answer: `[{"name":"sari","role":"read","created_by":"ayu","created_at":"2026-01-02T03:04:05Z","unsigned":true}]`,
		method: "GET", path: "/admin/operator-tokens", prints: "sari  read  false   not signed  2026-01-02T03:04:05Z  ayu",
	},
	"operator token rotate": {
		args: `operator token|rotate|sari p|--overlap|0s|--yes`, answer: `{"name":"sari p","role":"read","token":"op_y"}`,
		method: "POST", path: "/admin/operator-tokens/sari%20p/rotate", body: `{"overlap":"0s"}`, prints: "op_y",
	},
	"operator token revoke": {
		args: `operator token|revoke|sari|--reason|left|--yes`, answer: `[{"name":"sari","role":"read","revoked_at":"2026-01-02T03:04:05Z"}]`,
		method: "POST", path: "/admin/operator-tokens/sari/revoke", body: `{"reason":"left"}`, prints: "revoked",
	},
	"plugin list": {
		args: `plugin list`, answer: `[{"provider":"bank","owner":"platform","running":true,"max_in_flight":256,"manifest_digest":"dd","breakers":[{"mode":"live","calls":"open","lookups":"closed"}]}]`,
		method: "GET", path: "/admin/plugins", prints: "running  platform    0         0/256      live open/closed  dd",
	},
}

func TestAdminCommands(t *testing.T) {
	t.Parallel()
	testAdminCommands(t, adminCommands)
}

func testAdminCommands(t *testing.T, commands map[string]adminCommand) {
	t.Helper()
	for name, c := range commands {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newConsole(t, http.StatusOK, `{"success":true,"data":`+c.answer+`}`)
			group, rest, _ := strings.Cut(c.args, " ")
			args := append([]string{group}, strings.Split(rest, "|")...)
			code, p := run(t, f.environment(), c.input, args...)
			if code != exitOK || p.errors.Len() > 0 {
				t.Fatalf("exit code %d: %s", code, &p.errors)
			}
			if want := (request{c.method, c.path, c.body}); len(f.requests) != 1 || f.requests[0] != want {
				t.Errorf("asked %q, want %q", f.requests, want)
			}
			if !strings.Contains(p.output.String(), c.prints) {
				t.Errorf("printed\n%s\nwant %q in it", &p.output, c.prints)
			}
			code, p = run(t, f.environment(), c.input, append([]string{"--json"}, args...)...)
			if code != exitOK || !json.Valid(p.output.Bytes()) {
				t.Errorf("with --json: exit code %d, printed %s", code, &p.output)
			}
		})
	}
}

func TestAllMerchantsAreListed(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK,
		`{"success":true,"data":{"merchants":[{"merchant_id":"mer_1"}],"next":"mer_1"}}`,
		`{"success":true,"data":{"merchants":[{"merchant_id":"mer_2"}]}}`)
	code, p := run(t, f.environment(), "", "merchant", "list")
	if code != exitOK || !strings.Contains(p.output.String(), "mer_1") || !strings.Contains(p.output.String(), "mer_2") {
		t.Errorf("exit code %d, printed %s%s", code, &p.output, &p.errors)
	}
	if len(f.requests) != 2 || f.requests[1].path != "/admin/merchants?after=mer_1&limit=500" {
		t.Errorf("asked %q", f.requests)
	}
}

func TestARangeIsSentAgainInAsManyRequestsAsItTakes(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK,
		`{"success":true,"data":{"resent":2000,"until":"2026-01-02T03:04:05Z"}}`, `{"success":true,"data":{"resent":7}}`)
	code, p := run(t, f.environment(), "", "callback", "resend", "mer_1", "--mode", "live", "--since", "2026-01-01T00:00:00Z", "--failed")
	if code != exitOK || !strings.Contains(p.output.String(), "resent  2007") {
		t.Errorf("exit code %d, printed %s%s", code, &p.output, &p.errors)
	}
	const last = `{"mode":"live","since":"2026-01-01T00:00:00Z","until":"2026-01-02T03:04:05Z","failed":true}`
	if len(f.requests) != 2 || f.requests[1].body != last {
		t.Errorf("asked %q", f.requests)
	}

	stuck := newConsole(t, http.StatusOK, `{"success":true,"data":{"resent":1,"until":"2026-01-02T03:04:05Z"}}`)
	if code, p := run(t, stuck.environment(), "", "callback", "resend", "mer_1", "--mode", "live", "--failed"); code != exitOK || len(stuck.requests) != 2 {
		t.Errorf("without progress: exit code %d after %d requests: %s", code, len(stuck.requests), &p.errors)
	}
}

func TestARefusalIsTold(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusBadRequest, `{"success":false,"message":"The credentials do not fit.","error_code":"INVALID_REQUEST",
		"request_id":"r1","errors":[{"field":"credentials.api_key","message":"is required"}]}`)
	code, p := run(t, f.environment(), `{"pin":"k-secret"}`, "connection", "set", "mer_1", "bank", "--mode", "live", "--credentials-file", "-")
	want := "gerbang: The credentials do not fit.\n  credentials.api_key is required\n"
	if code != exitRefused || p.errors.String() != want || p.output.Len() > 0 {
		t.Errorf("exit code %d, said %q, printed %q", code, &p.errors, &p.output)
	}
}

func TestCredentialsComeFromAFileAndAreNotRepeated(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{}}`)
	file := t.TempDir() + "/credentials.json"
	for content, want := range map[string]int{`{"api_key":"k-secret"}`: exitOK, `{"api_key":"k-secret"`: exitRefused} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		code, p := run(t, f.environment(), "", "connection", "set", "mer_1", "bank", "--mode", "live", "--credentials-file", file)
		if code != want || strings.Contains(p.errors.String()+p.output.String(), "k-secret") {
			t.Errorf("%s: exit code %d: %s%s", content, code, &p.errors, &p.output)
		}
	}
	if len(f.requests) != 1 {
		t.Errorf("asked %q", f.requests)
	}
}

// Without credentials the gateway is asked all the same: it knows what is missing.
func TestConnectionSetTellsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusBadRequest, `{"success":false,"message":"bank asks for api_key.","error_code":"INVALID_REQUEST","request_id":"r",
		"errors":[{"field":"credentials.api_key","message":"is required: as the portal shows it"}]}`)
	code, p := run(t, f.environment(), "", "connection", "set", "mer_1", "bank", "--mode", "live")
	if code != exitRefused || len(f.requests) != 1 || f.requests[0].body != `{"mode":"live"}` {
		t.Errorf("exit code %d, asked %q", code, f.requests)
	}
	if !strings.Contains(p.errors.String(), "bank asks for api_key.\n  credentials.api_key is required: as the portal shows it") {
		t.Errorf("said %s", &p.errors)
	}
}

func TestWrongUse(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"success":true,"data":{}}`)
	for args, want := range map[string]string{
		"":                                   "expected one of",
		"frobnicate":                         "unexpected argument frobnicate",
		"merchant create Toko":               "--tier",
		"key create mer_1 --mode prod":       "--mode must be one of",
		"key rotate mer_1 k1 --overlap=soon": "soon",
		"connection set mer_1 bank":          "--mode",
		"connection set mer_1 bank --mode live --credentials={}": "unknown flag",
		"callback list mer_1":                                      "--mode",
		"callback list mer_1 --mode live --state lost":             "--state must be one of",
		"callback resend mer_1 --mode live --since=monday":         "monday",
		"callback url mer_1 --mode live":                           "either a URL or --clear",
		"callback url mer_1 https://x.example --clear --mode live": "either a URL or --clear",
		"callback secret forget mer_1 --mode live":                 "must be one of",
		"serve":   "--config",
		"migrate": "GERBANG_DATABASE_URL",
	} {
		code, p := run(t, f.environment(), "", strings.Fields(args)...)
		if code != exitUsage || !strings.Contains(p.errors.String(), want) || p.output.Len() > 0 {
			t.Errorf("%q: exit code %d, said %s", args, code, &p.errors)
		}
	}
	if len(f.requests) > 0 {
		t.Errorf("asked %q", f.requests)
	}
}

func TestWithoutATokenItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"merchant", "list"}, {"plugin", "list"}, {"key", "revoke", "mer_1", "k1"}} {
		code, p := run(t, nil, "", args...)
		if code != exitUsage || !strings.Contains(p.errors.String(), "GERBANG_ADMIN_TOKEN is not set") {
			t.Errorf("%v: exit code %d: %s", args, code, &p.errors)
		}
	}
}

func TestTheTokenMayStandInAFile(t *testing.T) {
	t.Parallel()
	f := newConsole(t, http.StatusOK, `{"data":[]}`)
	environment, file := f.environment(), t.TempDir()+"/token"
	environment["GERBANG_ADMIN_TOKEN"], environment["GERBANG_ADMIN_TOKEN_FILE"] = "", file
	if code, p := run(t, environment, "", "plugin", "list"); code != exitUsage || !strings.Contains(p.errors.String(), file) {
		t.Errorf("without the file: exit code %d: %s", code, &p.errors)
	}
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, p := run(t, environment, "", "plugin", "list"); code != exitOK {
		t.Errorf("exit code %d: %s", code, &p.errors)
	}
}

// TestMigrateReadsAMountedSecret: a file that became a variable has its last line break.
func TestMigrateReadsAMountedSecret(t *testing.T) {
	t.Parallel()
	code, p := run(t, map[string]string{"GERBANG_DATABASE_URL": "postgres://gerbang@127.0.0.1:1/gerbang\n"}, "", "migrate")
	if code == exitOK || !strings.Contains(p.errors.String(), "database=gerbang`") {
		t.Errorf("exit code %d, another database: %s", code, &p.errors)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--help": "merchant create", "dev --help": "--ready-file", "version": "gerbang", "--version": "gerbang",
		"--json version": `"go": "go`, "--json --version": `"interface": `} {
		code, p := run(t, nil, "", strings.Fields(args)...)
		if code != exitOK || !strings.Contains(p.output.String(), want) || p.errors.Len() > 0 {
			t.Errorf("%s: exit code %d, printed %s%s", args, code, &p.output, &p.errors)
		}
	}
}

func TestServeNamesTheFaultsOfItsFile(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/gerbang.yaml"
	if err := os.WriteFile(file, []byte("public_url: https://api.example.com\nunknown: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, p := run(t, nil, "", "serve", "--config", file)
	if code != exitRefused || !strings.Contains(p.errors.String(), "unknown") {
		t.Errorf("exit code %d: %s", code, &p.errors)
	}
}

func TestDevRefusesToBeReachedFromElsewhere(t *testing.T) {
	t.Parallel()
	code, p := run(t, nil, "", "dev", "--data", t.TempDir()+"/data", "--listen", "0.0.0.0:0")
	if code != exitRefused || !strings.Contains(p.errors.String(), "loopback") {
		t.Errorf("exit code %d: %s", code, &p.errors)
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/policy"
	if code, p := run(t, nil, "", "policy", "export", dir); code != exitOK {
		t.Fatalf("export: exit code %d: %s", code, &p.errors)
	}
	if code, p := run(t, nil, "", "policy", "export", dir); code != exitRefused || !strings.Contains(p.errors.String(), dir) {
		t.Errorf("export over it: exit code %d: %s", code, &p.errors)
	}
	if code, p := run(t, nil, "", "policy", "test", dir); code != exitOK || !strings.Contains(p.output.String(), "good") ||
		!strings.Contains(p.output.String(), "Judged without a gateway, with its own rules.") {
		t.Errorf("test: exit code %d: %s%s", code, &p.output, &p.errors)
	}
	alone := t.TempDir()
	if err := os.WriteFile(alone+"/data.json", policy.Default()["data.json"], 0o600); err != nil {
		t.Fatal(err)
	}
	if code, p := run(t, nil, "", "policy", "test", alone); code != exitOK || !strings.Contains(p.output.String(), "with the default rules.") {
		t.Errorf("test of data alone: exit code %d: %s%s", code, &p.output, &p.errors)
	}
	if err := os.WriteFile(dir+"/broken.rego", []byte("package gerbang\n\nx := \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, p := run(t, nil, "", "policy", "test", dir)
	if code != exitRefused || !strings.Contains(p.errors.String(), dir+"/broken.rego:") {
		t.Errorf("test of a broken one: exit code %d: %s", code, &p.errors)
	}
	code, p = run(t, nil, "", "--json", "policy", "test", dir)
	if code != exitRefused || !strings.Contains(p.output.String(), `"file": "`+dir+`/broken.rego"`) || !strings.Contains(p.output.String(), `"check": "compile"`) {
		t.Errorf("test of a broken one with --json: exit code %d: %s", code, &p.output)
	}
	if code, p := run(t, nil, "", "policy", "schema"); code != exitOK || !strings.Contains(p.output.String(), `"labels"`) {
		t.Errorf("schema: exit code %d: %s", code, &p.errors)
	}
	if code, _ := run(t, nil, "", "policy", "test", dir+"/nothing"); code != exitRefused {
		t.Errorf("test of nothing: exit code %d", code)
	}
}

func TestAKeysetIsMadeOnce(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/keyset.json"
	code, p := run(t, nil, "", "keyset", "create", file)
	if code != exitOK || !strings.Contains(p.output.String(), file) {
		t.Fatalf("exit code %d: %s", code, &p.errors)
	}
	if _, err := tenants.OpenKeysetFile(file); err != nil {
		t.Error(err)
	}
	made, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	code, p = run(t, nil, "", "keyset", "create", file)
	if code != exitRefused || !strings.Contains(p.errors.String(), file+" exists") {
		t.Errorf("over it: exit code %d: %s", code, &p.errors)
	}
	if kept, err := os.ReadFile(file); err != nil || !bytes.Equal(made, kept) {
		t.Errorf("the first keyset is gone (%v)", err)
	}
	if code, p := run(t, nil, "", "keyset", "create", file+"/nowhere"); code != exitRefused || p.output.Len() > 0 {
		t.Errorf("in a place that does not exist: exit code %d", code)
	}
}

func TestADigestIsWhatApprovesAPlugin(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, p := run(t, nil, "", "--json", "plugin", "digest", binary, "--name", "bank")
	var approval struct {
		Name, Version, SHA256 string
		ManifestDigest        string `json:"manifest_digest"`
	}
	if err := json.Unmarshal(p.output.Bytes(), &approval); code != exitOK || err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, &p.errors)
	}
	if !strings.Contains(p.errors.String(), "plugin runs") {
		t.Errorf("the log of the start is hidden: %s", &p.errors)
	}
	if approval.Name != "bank" || approval.Version != "1.2.3" || len(approval.SHA256) != 64 || len(approval.ManifestDigest) != 64 {
		t.Errorf("printed %+v", approval)
	}
	if code, p := run(t, nil, "", "plugin", "digest", binary, "--name", "other"); code != exitRefused || p.output.Len() > 0 {
		t.Errorf("under another name: exit code %d: %s", code, &p.errors)
	}
	// One that is linked dynamically: no plugin, but it gets as far as being run.
	const dynamic = "/bin/ls"
	missing := "needs its loader and libraries in read"
	if _, p := run(t, nil, "", "plugin", "digest", dynamic); !strings.Contains(p.errors.String(), missing) {
		t.Skipf("%s is not linked dynamically, or not confined: %s", dynamic, &p.errors)
	}
	arguments := []string{"plugin", "digest", dynamic}
	for _, dir := range []string{"/lib", "/lib64", "/usr/lib"} {
		if _, err := os.Stat(dir); err == nil {
			arguments = append(arguments, "--read", dir)
		}
	}
	if code, p := run(t, nil, "", arguments...); code != exitRefused || strings.Contains(p.errors.String(), missing) {
		t.Errorf("with its libraries: exit code %d: %s", code, &p.errors)
	}
}
