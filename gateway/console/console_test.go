package console_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/host"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/limit"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestOnlyOperatorsComeIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, authorization := range map[string]string{
		"nothing": "", "another": "Bearer " + strings.Repeat("x", 40), "a hash": "Bearer " + hexHash(token), "no scheme": token,
		"a prefix": "Bearer " + token[:20], "basic": "Basic " + token, "a space more": "Bearer  " + token,
	} {
		status, header, body := w.send(http.MethodGet, "/admin/merchants", authorization, "")
		if status != http.StatusUnauthorized || header.Get("WWW-Authenticate") != "Bearer" || !strings.Contains(body, `"AUTH_FAILED"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, path := range []string{"/admin", "/admin/", "/admin/nothing", "/admin/merchants/x"} {
		if status, _, body := w.send(http.MethodGet, path, "", ""); status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	for _, right := range []string{token, otherToken} {
		if status, _, body := w.send(http.MethodGet, "/admin/merchants", "Bearer "+right, ""); status != http.StatusOK {
			t.Errorf("a right token: %d %s", status, body)
		}
	}
}

func hexHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

func TestWhoGuessesIsSlowed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Now = func() time.Time { return now } })
	address := netip.MustParseAddrPort("127.0.0.9:4000")
	for i := range 20 {
		if got := w.from(address, "/admin/plugins", "Bearer wrong").Code; got != http.StatusUnauthorized {
			t.Fatalf("attempt %d: %d", i, got)
		}
	}
	slowed := w.from(address, "/admin/plugins", "Bearer wrong")
	if slowed.Code != http.StatusTooManyRequests || slowed.Header().Get("Retry-After") != "60" {
		t.Errorf("after 20 failures: %d, Retry-After %q", slowed.Code, slowed.Header().Get("Retry-After"))
	}
	if got := w.from(address, "/admin/plugins", "Bearer "+token).Code; got != http.StatusOK {
		t.Errorf("a right token from there: %d", got)
	}
	if got := w.from(netip.MustParseAddrPort("127.0.0.8:1"), "/admin/plugins", "Bearer wrong").Code; got != http.StatusUnauthorized {
		t.Errorf("another address: %d", got)
	}
}

// TestGuessesAreCountedByConnection: who may speak for a proxy gets no new address, and so no
// new attempts, by claiming one.
func TestGuessesAreCountedByConnection(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newWorld(t, func(config *console.Config, d *console.Dependencies) {
		config.Trusted = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
		d.Now = func() time.Time { return now }
	})
	for i := range 21 {
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/admin/plugins", nil)
		request.RemoteAddr = "127.0.0.1:4711"
		request.Header.Set("Authorization", "Bearer wrong")
		request.Header.Set("X-Forwarded-For", fmt.Sprintf("198.51.100.%d", i))
		answer := httptest.NewRecorder()
		w.console.ServeHTTP(answer, request)
		want := http.StatusUnauthorized
		if i == 20 {
			want = http.StatusTooManyRequests
		}
		if answer.Code != want {
			t.Fatalf("attempt %d: %d, not %d", i, answer.Code, want)
		}
	}
}

func TestOnlyListedAddressesComeIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		allow           []netip.Prefix
		inside, outside string
	}{
		"loopback by default":  {nil, "[::1]:1", "192.0.2.1:1"},
		"IPv4 in IPv6":         {nil, "[::ffff:127.0.0.1]:1", "[::ffff:192.0.2.1]:1"},
		"as the list has them": {[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, "192.0.2.1:1", "127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(config *console.Config, _ *console.Dependencies) { config.Allow = c.allow })
			for _, path := range []string{"/healthz", "/metrics", "/admin/plugins", "/readyz", "/"} {
				got := w.from(netip.MustParseAddrPort(c.outside), path, "Bearer "+token)
				if got.Code != http.StatusForbidden || !strings.Contains(got.Body.String(), `"success":false`) {
					t.Errorf("%s from outside: %d %s", path, got.Code, got.Body)
				}
			}
			for _, path := range []string{"/healthz", "/metrics", "/admin/plugins"} {
				if got := w.from(netip.MustParseAddrPort(c.inside), path, "Bearer "+token); got.Code != http.StatusOK {
					t.Errorf("%s from inside: %d %s", path, got.Code, got.Body)
				}
			}
		})
	}
}

func TestForwardedAddressesAreNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(config *console.Config, _ *console.Dependencies) {
		config.Allow = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-Forwarded-For", "192.0.2.1")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusForbidden {
		t.Errorf("got %d, %v", response.StatusCode, err)
	}
}

func TestEveryAnswerHasTheEnvelope(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := `{"name":"` + strings.Repeat("x", 64<<10) + `","tier":"starter"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		code, field        string
	}{
		{"GET", "/", "", 404, "NOT_FOUND", ""},
		{"GET", "/admin/nothing", "", 404, "NOT_FOUND", ""},
		{"DELETE", "/admin/merchants", "", 405, "METHOD_NOT_ALLOWED", ""},
		{"POST", "/readyz", "", 405, "METHOD_NOT_ALLOWED", ""},
		{"POST", "/admin/merchants", "", 400, "INVALID_REQUEST", "name"},
		{"POST", "/admin/merchants", "{", 400, "INVALID_REQUEST", ""},
		{"POST", "/admin/merchants", "[]", 400, "INVALID_REQUEST", ""},
		{"POST", "/admin/merchants", "{} {}", 400, "INVALID_REQUEST", ""},
		{"POST", "/admin/merchants", "{\"name\":\"\xff\"}", 400, "INVALID_REQUEST", "name"},
		{"POST", "/admin/merchants", `{"name":"Toko","Tier":"starter"}`, 400, "INVALID_REQUEST", "Tier"},
		{"POST", "/admin/merchants", `{"name":"Toko","name":"Toko"}`, 400, "INVALID_REQUEST", "name"},
		{"POST", "/admin/merchants", `{"name":17}`, 400, "INVALID_REQUEST", "name"},
		{"POST", "/admin/merchants", `{"name":"Toko","labels":{"a":1}}`, 400, "INVALID_REQUEST", "labels.a"},
		{"POST", "/admin/merchants", long, 413, "PAYLOAD_TOO_LARGE", ""},
	} {
		status, header, body := w.send(c.method, c.path, "Bearer "+token, c.body)
		var envelope struct {
			Success   *bool  `json:"success"`
			Code      string `json:"error_code"`
			RequestID string `json:"request_id"`
			Errors    []struct{ Field, Message string }
		}
		if err := json.Unmarshal([]byte(body), &envelope); err != nil {
			t.Errorf("%s %s: %s: %v", c.method, c.path, body, err)
			continue
		}
		field := ""
		if len(envelope.Errors) > 0 {
			field = envelope.Errors[0].Field
		}
		if status != c.status || envelope.Code != c.code || field != c.field || envelope.Success == nil || *envelope.Success {
			t.Errorf("%s %s %.40s: %d %s", c.method, c.path, c.body, status, body)
		}
		if envelope.RequestID == "" || header.Get("X-Request-Id") != envelope.RequestID || header.Get("X-Svc-Version") == "" {
			t.Errorf("%s %s: headers %v", c.method, c.path, header)
		}
		if status == http.StatusMethodNotAllowed && header.Get("Allow") == "" {
			t.Errorf("%s %s: Allow is missing", c.method, c.path)
		}
	}
}

func TestReadiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	notReady := func(check string) {
		t.Helper()
		if err := w.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), check) {
			t.Errorf("ready says %v, want it to name %s", err, check)
		}
		if status, _, _ := w.send(http.MethodGet, "/readyz", "", ""); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
		if status, _, _ := w.send(http.MethodGet, "/healthz", "", ""); status != http.StatusOK {
			t.Errorf("alive says %d", status)
		}
	}
	notReady("directory")
	w.runDirectory()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for err := w.Ready(t.Context()); err != nil; err = w.Ready(t.Context()) {
		select {
		case <-t.Context().Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
	w.plugins.run(false)
	if status, _, body := w.send(http.MethodGet, "/readyz", "", ""); status != http.StatusOK || !strings.Contains(body, `"plugin bank","ok":false`) {
		t.Errorf("without a plugin: %d %s; want it named, and the rest served", status, body)
	}
	w.plugins.run(true)
	w.stopping.Store(true)
	notReady("running is told to stop")
	w.stopping.Store(false)
	w.clock.set(3*time.Minute, errors.New("the clock is 3m0s ahead"))
	notReady("clock")
	notReady("the clock is 3m0s ahead")
	w.clock.set(time.Second, nil)
	if err := w.Ready(t.Context()); err != nil {
		t.Errorf("ready says %v after the clock was set", err)
	}
	w.store.Close()
	notReady("database")
}

// TestClockSkewIsMeasured: the metric tells no skew before it is known, and then
// its sign.
func TestClockSkewIsMeasured(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	skew := func(want string) {
		t.Helper()
		status, _, body := w.send(http.MethodGet, "/metrics", "", "")
		if status != http.StatusOK || strings.Contains(body, "\ngerbang_clock_skew_seconds ") != (want != "") ||
			!strings.Contains(body, "\ngerbang_clock_skew_seconds "+want+"\n") && want != "" {
			t.Errorf("status %d, want a skew of %q in %s", status, want, body)
		}
	}
	skew("")
	w.clock.set(1500*time.Millisecond, nil)
	skew("1.5")
	w.clock.set(-3*time.Minute, errors.New("behind"))
	skew("-180")
}

// broken is a list of merchants whose database failed.
type broken struct{ merchants }

type merchants = console.Merchants // which has a method of its own name

func (broken) Merchants(context.Context, tenants.MerchantID, int) ([]tenants.Merchant, error) {
	return nil, errors.New("connection to db.internal refused")
}

func TestFaultsInsideAreLoggedAndNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(_ *console.Config, d *console.Dependencies) { d.Merchants = broken{d.Merchants} })
	_, err := adminapi.ListMerchants.Call(t.Context(), w, adminapi.MerchantFilter{After: "", Limit: 10})
	failure := w.refused(err, http.StatusInternalServerError, "")
	if strings.Contains(failure.Error(), "db.internal") {
		t.Errorf("told %v", failure)
	}
	if log := w.logs.String(); !strings.Contains(log, "db.internal") || !strings.Contains(log, failure.RequestID) {
		t.Errorf("logged %s", log)
	}
}

func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	made := w.merchant()
	key, err := adminapi.CreateKey.Call(ctx, w, adminapi.NewKey{Merchant: made.MerchantID, Mode: "live"})
	if err != nil {
		t.Fatal(err)
	}
	next, err := adminapi.RotateKey.Call(ctx, w, adminapi.KeyRotation{Merchant: made.MerchantID, Key: key.KeyID})
	if err != nil {
		t.Fatal(err)
	}
	set := w.connect(made.MerchantID, "", `{"api_key":"k-secret"}`)
	_, _ = adminapi.ListPlugins.Call(ctx, adminapi.NewClient(w.url, "wrong-token"), adminapi.None{})
	w.store.Close()
	for _, try := range []error{
		second(adminapi.CreateMerchant.Call(ctx, w, adminapi.NewMerchant{Name: "Toko", Tier: "scale"})),
		second(adminapi.SetConnection.Call(ctx, w, adminapi.ConnectionSpec{Merchant: made.MerchantID, Provider: "bank", Mode: "test", Credentials: []byte(`{"api_key":"k-secret"}`)})),
	} {
		w.refused(try, http.StatusInternalServerError, "")
	}
	audit := mustJSON(t, w.logs.String())
	if !strings.Contains(audit, "operator token refused") || !strings.Contains(audit, "console request failed") {
		t.Errorf("the log lacks what happened: %s", audit)
	}
	for _, secret := range []string{
		token, "wrong-token", made.LiveKey, made.TestKey, made.CallbackSecret, made.TestCallbackSecret,
		key.SecretKey, next.SecretKey, "k-secret", set.NotifyPath,
	} {
		if strings.Contains(audit, secret) {
			t.Errorf("%q is in the log: %s", secret, audit)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	made := w.merchant()
	w.metrics.Observe("/payments/create", "OK", 30*time.Millisecond)
	w.metrics.Observe("/payments/create", "AUTH_FAILED", time.Millisecond)
	w.metrics.ObserveCall(host.Observation{Provider: "bank", Mode: "live", Operation: "/bank/name", Method: "call", Outcome: "done", Took: time.Second})
	sold := ledger.EndCapture(12000, 11500)
	sold.Provider = "ppob"
	back := ledger.TakeBack(12000, 11500)
	back.Provider = "ppob"
	for _, posting := range []*ledger.Transaction{nil, &sold, &back} {
		w.metrics.ObserveMoved(movement.Change{
			Transition: movement.Transition{To: movement.Succeeded, Posting: posting},
			Movement:   movement.Movement{Key: movement.Key{Owner: movement.Owner{MerchantID: made.MerchantID, Mode: "live"}, Kind: manifest.Order}},
		})
	}
	w.metrics.CountFailures(limit.NewFailures()).Record(time.Now(), netip.MustParseAddr("203.0.113.9"))
	w.metrics.WatchQuotas(func(percent int) int { return 100 - percent })
	w.send(http.MethodGet, "/admin/merchants", "wrong-token", "")
	w.send(http.MethodGet, "/readyz", "", "")
	if _, err := adminapi.CheckLedger.Call(t.Context(), w, adminapi.LedgerScope{Full: true}); err != nil {
		t.Fatal(err)
	}
	status, _, text := w.send(http.MethodGet, "/metrics", "", "")
	if status != http.StatusOK {
		t.Fatalf("status %d", status)
	}
	for _, line := range []string{
		`gerbang_movements_total{kind="order",mode="live",state="succeeded"} 3`,
		`gerbang_deposit_spent_rupiah_total{mode="live",provider="ppob"} 11500`,
		`gerbang_deposit_returned_rupiah_total{mode="live",provider="ppob"} 11500`,
		`gerbang_sign_in_failures_total{of="people"} 1`,
		`gerbang_sign_in_failures_total{of="tokens"} 1`,
		`gerbang_quota_accounts{percent="95"} 5`,
		`gerbang_ready{check="database"} 1`,
		`gerbang_ready{check="recovery"} 1`,
		`gerbang_database_connections_max{pool="reads"} 2`,
		`gerbang_database_statements_total{outcome="unavailable"} 0`,
		`gerbang_queue_overdue_seconds{queue="polls"} 0`,
		`gerbang_waiting{sort="override"} 0`,
		`gerbang_pauses{what="provider"} 0`,
		`gerbang_mail_oldest_seconds 0`,
		`gerbang_requests_total{code="OK",route="/payments/create"} 1`,
		`gerbang_requests_total{code="AUTH_FAILED",route="/payments/create"} 1`,
		`gerbang_request_duration_seconds_count{route="/payments/create"} 2`,
		`gerbang_request_duration_seconds_bucket{route="/payments/create",le="0.025"} 1`,
		`gerbang_plugin_calls_total{method="call",mode="live",operation="/bank/name",outcome="done",provider="bank"} 1`,
		`gerbang_plugin_call_duration_seconds_count{method="call",provider="bank"} 1`,
		`gerbang_plugin_up{provider="bank"} 1`,
		`gerbang_plugin_restarts_total{provider="bank"} 3`,
		`gerbang_plugin_streams{provider="bank"} 0`,
		`gerbang_plugin_calls_in_flight{provider="bank"} 2`,
		`gerbang_plugin_breaker_state{method="call",mode="live",provider="bank"} 2`,
		`gerbang_plugin_breaker_state{method="lookup",mode="live",provider="bank"} 1`,
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("%s is missing", line)
		}
	}
	for _, name := range []string{"go_goroutines", "go_build_info", "gerbang_build_info{", "gerbang_schema_version ", `gerbang_ledger_check_timestamp_seconds{scope="full"} `} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("%s is missing", name)
		}
	}
	if strings.Contains(text, made.MerchantID) || strings.Contains(text, "merchant=") {
		t.Error("a merchant is a label")
	}
}

func TestOperatorsMustBeTold(t *testing.T) {
	t.Parallel()
	for name, operators := range map[string][]console.Operator{
		"no name":      {{TokenHash: [32]byte{1}, Role: console.RoleRead}},
		"no token":     {{Name: "ayu", Role: console.RoleRead}},
		"no role":      {{Name: "ayu", TokenHash: [32]byte{1}}},
		"unknown role": {{Name: "ayu", TokenHash: [32]byte{1}, Role: "owner"}},
		"name twice": {
			{Name: "ayu", TokenHash: [32]byte{1}, Role: console.RoleRead}, {Name: "ayu", TokenHash: [32]byte{2}, Role: console.RoleRead},
		},
	} {
		if _, err := console.New(console.Config{Access: console.Access{Operators: operators}}, console.Dependencies{}); err == nil {
			t.Errorf("%s: there is no error", name)
		}
	}
}

func TestFailuresAreReadable(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	client := adminapi.NewClient(w.url, "wrong")
	_, err := adminapi.ListPlugins.Call(t.Context(), client, adminapi.None{})
	if failure := w.refused(err, http.StatusUnauthorized, ""); failure.Error() != "The operator token is missing or wrong." {
		t.Errorf("got %q", failure)
	}
}
