package app_test

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/app"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

var (
	secretFile = regexp.MustCompile(`(?m)^[\s#-]*(\w+_file): (\S+)`)
	inComment  = regexp.MustCompile(`(?m)^# (\w+: \S)`)
	settingKey = regexp.MustCompile(`(?m)^(?:# |[\s-]*)(\w+):`)
)

// TestShippedConfigs loads every configuration that is shipped, as it is and
// with the settings that stand in comments, and wants all settings shown.
func TestShippedConfigs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "deploy", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no examples: %v", err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shipped := string(content)
		wantLoads(t, shipped)
		// The URL of the database stands in the file or in one of its own, and the
		// keyset comes one way.
		all := inComment.ReplaceAllString(shipped, "$1")
		for _, others := range []string{"keyset_env|keyset_uri", "keyset_env|keyset_file"} {
			wantLoads(t, regexp.MustCompile(`(?m)^(database_url_file|`+others+`): .*$`).ReplaceAllString(all, ""))
		}

		shown := map[string]bool{}
		for _, found := range settingKey.FindAllStringSubmatch(shipped, -1) {
			shown[found[1]] = true
		}
		for _, part := range []any{app.Config{}, app.PluginConfig{}, app.OperatorConfig{}} {
			for _, field := range reflect.VisibleFields(reflect.TypeOf(part)) {
				if name := field.Tag.Get("koanf"); field.IsExported() && !shown[name] {
					t.Errorf("%s does not show %q (%T.%s)", file, name, part, field.Name)
				}
			}
		}
	}
}

// wantLoads loads a configuration from a directory of its own, with the secrets that
// it names beside it.
func wantLoads(t *testing.T, content string) {
	t.Helper()
	dir := t.TempDir()
	for _, found := range secretFile.FindAllStringSubmatch(content, -1) {
		path := filepath.Join(dir, found[2])
		secret := "postgres://gerbang@127.0.0.1:5432/gerbang?note=longer-than-a-short-token\n"
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(secret), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "gerbang.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	config, err := app.LoadConfig(file, func(string) string { return "" })
	if err != nil {
		t.Errorf("%v\n%s", err, content)
		return
	}
	if len(config.Plugins) == 0 || len(config.Operators) == 0 || config.DatabaseURL == "" {
		t.Errorf("read %+v", config)
	}
}

// TestServe runs two replicas as an operator does who has no console but the
// commands: from an empty database to a payment that is PAID, and to the end.
func TestServe(t *testing.T) {
	t.Parallel()
	databaseURL := dbtest.New(t, "", nil)
	d := newDeployment(t)
	d.refusesOthers(t, databaseURL)
	wire := newWire(t, databaseURL)
	replicas := d.start(t, databaseURL, wire.url)
	a, b := replicas[0], replicas[1]
	s := d.newShop(t, a, "growth")

	made := s.create(t, fields{"type": "qris", "amount": 20001})
	s.at(b).becomes(t, made.ExternalID, "PENDING", paidWithin)
	b.pay(t, fields{"qr_string": made.QRString})
	s.becomes(t, made.ExternalID, "PAID", paidWithin)
	linked := s.at(b).create(t, fields{"amount": 20002})
	a.pay(t, fields{"url": a.providersPage(t, linked.CheckoutURL)})
	s.becomes(t, linked.ExternalID, "PAID", paidWithin)

	for _, p := range replicas {
		wantHealth(t, p)
		wantNoStrangers(t, p)
	}
	operatorsActOn(t, d.newShop(t, a, "growth"), replicas...)
	wantUnready(t, s, b, wire)
	finishesWhatIsUnderWay(t, s.at(b), a)
	a.stop(t)
}

// refusesOthers starts replicas whose configuration pins another binary or
// another manifest than there is.
func (d *deployment) refusesOthers(t *testing.T, databaseURL string) {
	t.Helper()
	binary, manifest := d.approved, d.approved
	binary.SHA256 = strings.Repeat("0", 64)
	manifest.ManifestDigest = strings.Repeat("0", 64)
	for differs, plugin := range map[string]approval{d.approved.Path: binary, d.approved.ManifestDigest: manifest} {
		p := d.launch(t, databaseURL, plugin)
		await(t, readyWithin, "the refusal", func() bool { return !p.running() })
		last := p.log.tail(1)
		if p.code != 1 || !strings.Contains(last, "plugin payments") || !strings.Contains(last, differs) || p.serves() {
			t.Errorf("code %d and %q; want 1 and %q", p.code, last, differs)
		}
	}
}

// wantHealth reads what a probe and a collector of metrics read.
func wantHealth(t *testing.T, p *program) {
	t.Helper()
	if status, body, _ := p.get(t, p.ConsoleURL+"/healthz"); status != http.StatusOK || strings.TrimSpace(string(body)) != `{"alive":true}` {
		t.Errorf("/healthz: %d %s", status, body)
	}
	status, body, _ := p.get(t, p.ConsoleURL+"/readyz")
	var readiness adminapi.Readiness
	if err := json.Unmarshal(body, &readiness); err != nil || status != http.StatusOK || !readiness.Ready {
		t.Errorf("/readyz: %d %s", status, body)
	}
	checks := map[string]bool{}
	for _, check := range readiness.Checks {
		checks[check.Name] = check.OK
	}
	if want := map[string]bool{"database": true, "clock": true, "directory": true, "plugin payments": true}; !maps.Equal(checks, want) {
		t.Errorf("/readyz checks %v", checks)
	}
	status, body, _ = p.get(t, p.ConsoleURL+"/metrics")
	for _, part := range []string{
		`gerbang_requests_total{code="OK",route="/payments/create"} 1`,
		`gerbang_plugin_calls_total{method="call",mode="live",operation="/payments/create",outcome="pending",provider="payments"} 1`,
		"gerbang_request_duration_seconds_bucket{", "\ngerbang_clock_skew_seconds ", "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if status != http.StatusOK || !strings.Contains(string(body), part) {
			t.Errorf("/metrics: %d, without %s", status, part)
		}
	}
}

// wantNoStrangers comes to the console without a token, and with another.
func wantNoStrangers(t *testing.T, p *program) {
	t.Helper()
	if status, body, _ := p.get(t, p.ConsoleURL+"/admin/merchants"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
	stranger := &program{document: document{ConsoleURL: p.ConsoleURL, AdminToken: strings.Repeat("x", 64)}}
	if out, err := stranger.run(t, "merchant", "list"); err == nil {
		t.Errorf("with another token: %s", out)
	}
}

// operatorsActOn has an operator work on the first replica, and wants all to
// act on it in time.
func operatorsActOn(t *testing.T, s shop, replicas ...*program) {
	t.Helper()
	everywhere := func(what string, s shop, holds func(answer) bool) {
		t.Helper()
		acts := time.Now()
		for _, p := range replicas {
			// Failed authentications are counted by address, so this asks seldom.
			tick := time.NewTicker(actsWithin / 8)
			for a := s.at(p).ask(t, "/payments/status", fields{"external_id": "none"}); !holds(a); {
				if time.Since(acts) > actsWithin {
					t.Fatalf("%s: a replica still answers %s", what, a)
				}
				<-tick.C
				a = s.at(p).ask(t, "/payments/status", fields{"external_id": "none"})
			}
			tick.Stop()
		}
	}
	answers := func(code fault.Code) func(answer) bool { return func(a answer) bool { return a.Code == code } }
	slower := func(a answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=10;") }
	operator := replicas[0]

	everywhere("before", s, answers(fault.NotFound))
	operator.succeed(t, "", nil, "merchant", "suspend", s.merchant, "--reason", "fraud")
	everywhere("suspend", s, answers(fault.MerchantSuspended))
	operator.succeed(t, "", nil, "merchant", "resume", s.merchant)
	everywhere("resume", s, answers(fault.NotFound))
	operator.succeed(t, "", nil, "merchant", "tier", s.merchant, "starter")
	everywhere("tier", s, slower)
	operator.succeed(t, "", nil, "merchant", "tier", s.merchant, "scale")
	operator.succeed(t, "", nil, "merchant", "limit", s.merchant, "--rate", "50/s", "--burst", "77", "--reason", "a fair")
	everywhere("a limit of its own", s, func(a answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=77;") })
	operator.succeed(t, "", nil, "merchant", "limit", s.merchant, "--remove", "default", "--reason", "over")
	everywhere("the limit's removal", s, func(a answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=1000;") })

	merchant, err := operator.admin().Merchant(t.Context(), s.merchant)
	if err != nil {
		t.Fatal(err)
	}
	var old string
	for _, key := range merchant.Keys {
		if key.Mode == "live" {
			old = key.KeyID
		}
	}
	var next adminapi.CreatedKey
	operator.succeed(t, "", &next, "key", "rotate", s.merchant, old, "--overlap", "1h")
	fresh := s
	fresh.key = next.SecretKey
	everywhere("the new key", fresh, answers(fault.NotFound))
	everywhere("the old key within the overlap", s, answers(fault.NotFound))
	operator.succeed(t, "", nil, "key", "revoke", s.merchant, old, "--reason", "leaked")
	everywhere("revoke", s, answers(fault.AuthFailed))
	operator.succeed(t, "", &next, "key", "rotate", s.merchant, next.KeyID, "--overlap", "0s")
	everywhere("a rotation without an overlap", fresh, answers(fault.AuthFailed))
	operator.succeed(t, "", &next, "key", "create", s.merchant, "--mode", "live", "--scope", "read")
	fresh.key = next.SecretKey
	everywhere("a key that was made", fresh, answers(fault.NotFound))
}

// wantUnready takes the database away from one replica.
func wantUnready(t *testing.T, s shop, p *program, wire *wire) {
	t.Helper()
	wire.refuse()
	status, body, _ := p.get(t, p.ConsoleURL+"/readyz")
	var readiness adminapi.Readiness
	if err := json.Unmarshal(body, &readiness); err != nil || status != http.StatusServiceUnavailable || readiness.Ready {
		t.Errorf("/readyz without a database: %d %s", status, body)
	}
	for _, check := range readiness.Checks {
		if check.OK == (check.Name == "database") {
			t.Errorf("without a database: %+v", check)
		}
	}
	for _, path := range []string{"/healthz", "/metrics"} {
		if status, body, _ := p.get(t, p.ConsoleURL+path); status != http.StatusOK {
			t.Errorf("%s without a database: %d %s", path, status, body)
		}
	}
	s.create(t, fields{"amount": 20003}) // the other replica has its own way
	wire.restore()
	await(t, 5*time.Second, "readiness", func() bool { return p.admin().Ready(t.Context()) == nil })
	s.at(p).create(t, fields{"amount": 20004})
}

// finishesWhatIsUnderWay stops a replica while the provider works on payments
// of its: they are answered, and nobody new is let in.
func finishesWhatIsUnderWay(t *testing.T, s shop, other *program) {
	t.Helper()
	l := newLoad(s)
	l.inject(t, "latency", faultOperations["payment_link"], 2)
	var group sync.WaitGroup
	for range 2 {
		a := l.attempt("payment_link")
		group.Go(func() { l.try(t.Context(), a) })
	}
	l.inFlight(t, 2)
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(s.APIURL)
	if err != nil {
		t.Fatal(err)
	}
	await(t, time.Second, "a closed door", func() bool {
		conn, err := net.Dial("tcp", target.Host)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if !s.running() {
		t.Error("it ended before what was under way")
	}
	await(t, stopsWithin, "the end after SIGTERM", func() bool { return !s.running() })
	group.Wait()
	if s.code != 0 {
		t.Errorf("exit code %d after SIGTERM", s.code)
	}
	for _, a := range l.attempts {
		if a.err != nil || !a.first.Success || a.took < 2*time.Second {
			t.Errorf("what was under way: %v, %v after %v", a.first, a.err, a.took)
		}
	}
	l.shop = s.at(other)
	l.settle(t)
}
