package replicas_test

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestServe runs two replicas as an operator does with commands only: from an
// empty database, which one of them does not reach at first, to a payment that is PAID,
// and to the stop. A third is stopped while it waits for the database. The database that is
// another version's for a while moves no money.
func TestServe(t *testing.T) {
	t.Parallel()
	databaseURL := dbtest.New(t, "", nil)
	d := harness.NewDeploymentOf(t, "payments", "--latency=8s") // longer than stop_wait
	proxy := harness.NewProxy(t, databaseURL)
	proxy.Refuse()
	a, b, c := d.Launch(t, databaseURL, d.Approved, "stop_wait: 6s"), d.Launch(t, proxy.URL, d.Approved), d.Launch(t, proxy.URL, d.Approved)
	for _, p := range []*harness.Program{b, c} {
		harness.Await(t, harness.ReadyWithin, "a start that waits", func() bool { return p.LogCount("the start waits for it") > 0 })
	}
	c.Stop(t)
	proxy.Restore()
	replicas := []*harness.Program{a, b}
	d.Join(t, replicas...)
	s := d.NewShop(t, a, "growth")

	made := s.Create(t, harness.Fields{"type": "qris", "amount": 20001})
	s.At(b).AwaitStatus(t, made.ExternalID, "PENDING", harness.PaidWithin)
	b.Pay(t, harness.Fields{"qr_string": made.QRString})
	s.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
	linked := s.At(b).Create(t, harness.Fields{"amount": 20002})
	a.Pay(t, harness.Fields{"url": a.ProviderPage(t, linked.CheckoutURL)})
	s.AwaitStatus(t, linked.ExternalID, "PAID", harness.PaidWithin)

	for _, p := range replicas {
		wantHealth(t, p)
		wantNoStrangers(t, p)
	}
	operatorsActOn(t, d.NewShop(t, a, "growth"), replicas...)
	holdsOverAll(t, d.NewShop(t, a, "growth"), replicas...)
	takesOverTokens(t, d, a)
	takesOverProxies(t, d, a)
	wantUnready(t, s, b, proxy)
	anotherSchema(t, s)
	finishesWhatIsUnderWay(t, s.At(b), a)
	stopIsToldFirst(t, s)
}

// wantHealth reads what a probe and a collector of metrics read.
func wantHealth(t *testing.T, p *harness.Program) {
	t.Helper()
	if status, body, _ := p.Get(t, p.ConsoleURL+"/healthz"); status != http.StatusOK || strings.TrimSpace(string(body)) != `{"alive":true}` {
		t.Errorf("/healthz: %d %s", status, body)
	}
	status, body, _ := p.Get(t, p.ConsoleURL+"/readyz")
	var readiness adminapi.Readiness
	if err := json.Unmarshal(body, &readiness); err != nil || status != http.StatusOK || !readiness.Ready {
		t.Errorf("/readyz: %d %s", status, body)
	}
	checks := map[string]bool{}
	for _, check := range readiness.Checks {
		checks[check.Name] = check.OK
	}
	if want := map[string]bool{"running": true, "database": true, "recovery": true, "clock": true, "directory": true, "lists": true, "policy": true, "policy version": true, "plugin payments": true}; !maps.Equal(checks, want) {
		t.Errorf("/readyz checks %v", checks)
	}
	status, body, _ = p.Get(t, p.ConsoleURL+"/metrics")
	for _, part := range []string{
		`gerbang_requests_total{code="OK",route="/payments/create"} 1`,
		`gerbang_plugin_calls_total{method="call",mode="live",operation="/payments/create",outcome="pending",provider="payments"} 1`,
		"gerbang_request_duration_seconds_bucket{", "\ngerbang_clock_skew_seconds ", "\ngerbang_policy_info{version=", "\ngerbang_policy_behind 0", "\ngerbang_replicas_live ", "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if status != http.StatusOK || !strings.Contains(string(body), part) {
			t.Errorf("/metrics: %d, without %s", status, part)
		}
	}
}

// wantNoStrangers comes to the console without a token, and with another.
func wantNoStrangers(t *testing.T, p *harness.Program) {
	t.Helper()
	if status, body, _ := p.Get(t, p.ConsoleURL+"/admin/merchants"); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d %s", status, body)
	}
	stranger := &harness.Program{Document: harness.Document{ConsoleURL: p.ConsoleURL, AdminToken: strings.Repeat("x", 64)}}
	if out, err := stranger.Run(t, "merchant", "list"); err == nil {
		t.Errorf("with another token: %s", out)
	}
}

// operatorsActOn has an operator work on the first replica, and wants all to
// act on it in time.
func operatorsActOn(t *testing.T, s harness.Shop, replicas ...*harness.Program) {
	t.Helper()
	everywhere := func(what string, s harness.Shop, holds func(harness.Answer) bool) {
		t.Helper()
		for _, p := range replicas {
			// Failed authentications are counted by address, so this asks seldom.
			tick := time.NewTicker(250 * time.Millisecond)
			harness.Await(t, harness.ReadyWithin, what+" on every replica", func() bool {
				<-tick.C
				return holds(s.At(p).Ask(t, "/payments/status", harness.Fields{"external_id": "none"}))
			})
			tick.Stop()
		}
	}
	answers := func(code fault.Code) func(harness.Answer) bool {
		return func(a harness.Answer) bool { return a.Code == code }
	}
	slower := func(a harness.Answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=10;") }
	operator := replicas[0]

	everywhere("before", s, answers(fault.NotFound))
	operator.MustRun(t, "", nil, "merchant", "suspend", s.MerchantID, "--reason", "fraud")
	everywhere("suspend", s, answers(fault.MerchantSuspended))
	operator.MustRun(t, "", nil, "merchant", "resume", s.MerchantID)
	everywhere("resume", s, answers(fault.NotFound))
	operator.MustRun(t, "", nil, "merchant", "tier", s.MerchantID, "starter")
	everywhere("tier", s, slower)
	operator.MustRun(t, "", nil, "merchant", "tier", s.MerchantID, "scale")
	operator.MustRun(t, "", nil, "merchant", "limit", s.MerchantID, "--rate", "50/s", "--burst", "77", "--reason", "a fair")
	everywhere("a limit of its own", s, func(a harness.Answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=77;") })
	operator.MustRun(t, "", nil, "merchant", "limit", s.MerchantID, "--remove", "default", "--reason", "over")
	everywhere("the limit's removal", s, func(a harness.Answer) bool { return strings.Contains(a.Header.Get("RateLimit-Policy"), "q=1000;") })

	pausesEverywhere(t, s, replicas...)

	merchant, err := adminapi.ShowMerchant.Call(t.Context(), operator.Admin(), adminapi.MerchantID{Merchant: s.MerchantID})
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
	operator.MustRun(t, "", &next, "key", "rotate", s.MerchantID, old, "--overlap", "1h")
	fresh := s
	fresh.Key = next.SecretKey
	everywhere("the new key", fresh, answers(fault.NotFound))
	everywhere("the old key within the overlap", s, answers(fault.NotFound))
	operator.MustRun(t, "", nil, "key", "revoke", s.MerchantID, old, "--reason", "leaked", "--yes")
	everywhere("revoke", s, answers(fault.AuthFailed))
	operator.MustRun(t, "", &next, "key", "rotate", s.MerchantID, next.KeyID, "--overlap", "0s", "--yes")
	everywhere("a rotation without an overlap", fresh, answers(fault.AuthFailed))
	operator.MustRun(t, "", &next, "key", "create", s.MerchantID, "--mode", "live", "--scope", "read")
	fresh.Key = next.SecretKey
	everywhere("a key that was made", fresh, answers(fault.NotFound))
}

// pausesEverywhere has an operator pause a merchant's connection and then its provider
// on the first replica: all refuse what is new in time, and answer for what exists.
func pausesEverywhere(t *testing.T, s harness.Shop, replicas ...*harness.Program) {
	t.Helper()
	made, amount := s.Create(t, harness.Fields{"amount": 30000}), 30000
	create := func(p *harness.Program) harness.Answer {
		amount++
		return s.At(p).Ask(t, "/payments/create", s.PaymentBody(harness.Fields{"amount": amount}))
	}
	everywhere := func(what string, holds func(harness.Answer) bool) {
		t.Helper()
		for _, p := range replicas {
			harness.Await(t, harness.ReadyWithin, what, func() bool { return holds(create(p)) })
			if status := s.At(p).Status(t, made.ExternalID).Status; status != "PENDING" {
				t.Errorf("%s: the payment is %s", what, status)
			}
		}
	}
	refused := func(a harness.Answer) bool { return a.Code == fault.ProviderUnavailable }
	taken := func(a harness.Answer) bool { return a.Success }
	for _, paused := range [][]string{{"connection", s.MerchantID, "payments"}, {"provider", "payments"}} {
		command := append([]string{paused[0], "pause"}, paused[1:]...)
		replicas[0].MustRun(t, "", nil, append(command, "--mode", "live", "--reason", "their key leaked")...)
		everywhere("a paused "+paused[0], refused)
		command[1] = "resume"
		replicas[0].MustRun(t, "", nil, append(command, "--mode", "live")...)
		everywhere("a resumed "+paused[0], taken)
	}
}

// wantUnready takes the database away from one replica.
func wantUnready(t *testing.T, s harness.Shop, p *harness.Program, proxy *harness.Proxy) {
	t.Helper()
	proxy.Refuse()
	status, body, _ := p.Get(t, p.ConsoleURL+"/readyz")
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
		if status, body, _ := p.Get(t, p.ConsoleURL+path); status != http.StatusOK {
			t.Errorf("%s without a database: %d %s", path, status, body)
		}
	}
	s.Create(t, harness.Fields{"amount": 20003}) // the other replica has its own way
	proxy.Restore()
	harness.Await(t, harness.ReadyWithin, "readiness", func() bool { return p.Admin().Ready(t.Context()) == nil })
	s.At(p).Create(t, harness.Fields{"amount": 20004})
}

// takesOverTokens changes an operator's token while a replica runs: SIGHUP takes it over,
// and what is wrong with the files changes nothing and ends nothing.
func takesOverTokens(t *testing.T, d *harness.Deployment, p *harness.Program) {
	t.Helper()
	hangUp := func() {
		if err := p.Command.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	peer := &harness.Program{Document: harness.Document{ConsoleURL: p.ConsoleURL, AdminToken: d.Peer}}
	wants := func(what string, lets bool) {
		t.Helper()
		harness.Await(t, harness.ReadyWithin, what, func() bool {
			_, err := adminapi.ListMerchants.Call(t.Context(), peer.Admin(), adminapi.MerchantFilter{After: "", Limit: 1})
			return (err == nil) == lets
		})
	}
	file := filepath.Join(d.Dir, "peer.token")
	wants("the token of the start", true)
	if err := os.WriteFile(file, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	harness.Await(t, harness.ReadyWithin, "the refusal", func() bool { return strings.Contains(p.Log.Tail(20), "the configuration was not reloaded") })
	wants("the token of the start, where the new one is wrong", true)
	if err := os.WriteFile(file, []byte(strings.Repeat("n", 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	hangUp()
	wants("an end of the old token", false)
	peer.AdminToken = strings.Repeat("n", 40)
	wants("the new token", true)
	d.Peer = peer.AdminToken
}

// takesOverProxies names a proxy while a replica runs: after SIGHUP the consoles' pages, too,
// know people by the addresses that it tells.
func takesOverProxies(t *testing.T, d *harness.Deployment, p *harness.Program) {
	t.Helper()
	signIn := func() {
		t.Helper()
		form := url.Values{"email": {"nobody@example.com"}, "password": {"a wrong sentence"}, "code": {"000000"}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.ConsoleURL+"/signin", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("X-Forwarded-For", "203.0.113.9")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	refused := func(address string) bool {
		return strings.Contains(p.Log.Tail(20), `"address":"`+address+`"`)
	}
	signIn()
	harness.Await(t, harness.ReadyWithin, "a refusal of the proxy's own address", func() bool { return refused("127.0.0.1") })
	configs, err := filepath.Glob(filepath.Join(d.Dir, "replica-*.yaml"))
	if err != nil || len(configs) == 0 {
		t.Fatalf("%v, %v", configs, err)
	}
	for _, config := range configs {
		text, err := os.ReadFile(config)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(config, append(text, "\ntrusted_proxies: [127.0.0.1/32]\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Command.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.ReadyWithin, "a refusal of the address that the proxy tells", func() bool {
		signIn()
		return refused("203.0.113.9")
	})
}

// finishesWhatIsUnderWay stops a replica while the provider works on payments
// of its: they are answered, and nobody new is let in.
func finishesWhatIsUnderWay(t *testing.T, s harness.Shop, other *harness.Program) {
	t.Helper()
	l := harness.NewLoad(s)
	l.Inject(t, "latency", harness.FaultOperations["payment_link"], 2)
	var group sync.WaitGroup
	for range 2 {
		a := l.NewAttempt("payment_link")
		group.Go(func() { l.Try(t.Context(), a) })
	}
	l.AwaitInFlight(t, 2)
	if err := s.Command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(s.APIURL)
	if err != nil {
		t.Fatal(err)
	}
	harness.Await(t, harness.ReadyWithin, "a closed door", func() bool {
		conn, err := net.Dial("tcp", target.Host)
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	if !s.Running() {
		t.Error("it ended before what was under way")
	}
	harness.Await(t, harness.StopsWithin, "the end after SIGTERM", func() bool { return !s.Running() })
	group.Wait()
	if s.Code != 0 {
		t.Errorf("exit code %d after SIGTERM", s.Code)
	}
	for _, a := range l.Attempts {
		if a.Err != nil || !a.First.Success || a.Took < 2*time.Second {
			t.Errorf("what was under way: %v, %v after %v", a.First, a.Err, a.Took)
		}
	}
	l.Shop = s.At(other)
	l.Resolve(t)
}

// stopIsToldFirst stops a replica. It says that it is not ready, and
// serves for as long as its configuration says, so that a load balancer finds no closed
// door. Its console answers until the last merchant has been answered.
func stopIsToldFirst(t *testing.T, s harness.Shop) {
	t.Helper()
	p := s.Program
	l := harness.NewLoad(s)
	l.AwaitClosedBreaker(t, "payments")
	l.Inject(t, "latency", harness.FaultOperations["payment_link"], 2)
	if err := p.Command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	ready := func() (status int, body string) {
		response, err := http.Get(p.ConsoleURL + "/readyz")
		if err != nil {
			return 0, err.Error()
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Error(err)
		}
		return response.StatusCode, string(text)
	}
	harness.Await(t, harness.ReadyWithin, "not ready", func() bool {
		status, body := ready()
		return status == http.StatusServiceUnavailable && strings.Contains(body, "is told to stop")
	})
	a := l.NewAttempt("payment_link") // takes longer than stop_wait, so it is under way when the door closes
	l.Try(t.Context(), a)
	if a.Err != nil || !a.First.Success {
		t.Errorf("what came after the word to stop: %v, %v", a.First, a.Err)
	}
	if status, body := ready(); status != http.StatusServiceUnavailable && p.Running() && status != 0 {
		t.Errorf("the console says %d %s", status, body)
	}
	harness.Await(t, harness.StopsWithin, "the end after SIGTERM", func() bool { return !p.Running() })
	for _, line := range []string{"gateway stops: not ready from now on", "gateway stops: every request is answered or cut"} {
		if !strings.Contains(p.Log.Tail(50), line) {
			t.Errorf("the log does not say %q:\n%s", line, p.Log.Tail(50))
		}
	}
	if p.Code != 0 {
		t.Errorf("exit code %d", p.Code)
	}
}

// anotherSchema has the database go on to the schemas of a later version: a replica that is
// left over takes no money and tells what exists. Nobody asks its
// /readyz for that.
func anotherSchema(t *testing.T, s harness.Shop) {
	t.Helper()
	amount := 40_000
	made := s.Create(t, harness.Fields{"amount": amount})
	conn, err := pgx.Connect(t.Context(), s.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	execute := func(sql string) {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	execute("INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, TRUE)")
	var refused harness.Fields
	harness.Await(t, harness.ReadyWithin, "a refusal", func() bool {
		amount++
		body := s.PaymentBody(harness.Fields{"amount": amount})
		a := s.Ask(t, "/payments/create", body)
		if !a.Success {
			refused = body
			harness.Refusal{Code: fault.Internal, Sent: fault.SentNo, Retry: fault.RetryLater}.Want(t, "a creation", a, body["external_id"].(string))
		}
		return !a.Success
	})
	if got := s.Status(t, made.ExternalID); got.Status != "PENDING" {
		t.Errorf("a status: %s", got.Status)
	}
	a := s.Ask(t, "/payments/cancel", harness.Fields{"external_id": made.ExternalID})
	if a.Code != fault.Internal || a.Sent != fault.SentNo || a.Retry != fault.RetryLater {
		t.Errorf("a cancel: %s", a)
	}
	execute("DELETE FROM goose_db_version WHERE version_id = 1000")
	harness.Await(t, harness.ReadyWithin, "the same creation", func() bool { return s.Ask(t, "/payments/create", refused).Success })
}
