package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// upstream is the simulator as the conformance suite wants to see it. The name
// of an account there is "merchant/mode/version".
type upstream struct {
	sdktest.Hanger
	t         *testing.T
	link      string
	env       *kit.Env
	simulator *sandbox.Simulator
	api       *httptest.Server
	hooks     *httptest.Server
	requests  atomic.Int64

	mu       sync.Mutex
	versions map[string]int64
	waiting  map[string]chan sdk.Notification // by reference
}

// openUpstream opens one whose accounts make links of the kind given.
func openUpstream(link string) func(*testing.T) sdktest.Upstream {
	return func(t *testing.T) sdktest.Upstream {
		t.Helper()
		u := &upstream{t: t, link: link, versions: map[string]int64{}, waiting: map[string]chan sdk.Notification{}}
		var err error
		if u.env, err = kit.Open(kit.Config{Provider: "payments", StateDir: t.TempDir(), Token: "t"}); err != nil {
			t.Fatal(err)
		}
		if u.simulator, err = sandbox.New(u.env, sandbox.DefaultOptions()); err != nil {
			t.Fatal(err)
		}
		u.hooks = httptest.NewServer(http.HandlerFunc(u.receive))
		u.api = httptest.NewServer(u.count(u.env.Handler(u.simulator)))
		t.Cleanup(func() {
			u.api.Close()
			if err := u.env.Close(); err != nil {
				t.Error(err)
			}
			u.hooks.Close()
		})
		return u
	}
}

// count counts requests, and lets one that creates something hang if ordered.
func (u *upstream) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.requests.Add(1)
		if key, _, _ := r.BasicAuth(); u.outdated(strings.TrimPrefix(key, "xnd_development_")) {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error_code":"INVALID_API_KEY","message":"API key was replaced"}`)
			return
		}
		creates := r.Method == http.MethodPost && (r.URL.Path == "/v2/invoices" || r.URL.Path == "/qr_codes")
		if creates && u.Hangs(r) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// outdated tells an account's name that was replaced.
func (u *upstream) outdated(name string) bool {
	who := strings.Split(name, "/")
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(who) == 3 && fmt.Sprint(u.versions[who[0]+"/"+who[1]]) != who[2]
}

// receive takes the webhooks of all accounts.
func (u *upstream) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("read a webhook: %v", err)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for reference, came := range u.waiting {
		if strings.Contains(string(body), reference) {
			came <- sdk.Notification{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body}
			delete(u.waiting, reference)
		}
	}
}

// Connect registers the account, and registers it again for the same names.
func (u *upstream) Connect(merchant, mode string) sdk.Connection {
	u.mu.Lock()
	version := max(1, u.versions[merchant+"/"+mode])
	u.versions[merchant+"/"+mode] = version
	u.mu.Unlock()
	name := fmt.Sprintf("%s/%s/%d", merchant, mode, version)
	key, token := "xnd_development_"+name, "token of "+name
	err := u.env.Accounts.Register(kit.Account{ID: kit.AccountOf(key), Name: name, CallbackURL: u.hooks.URL, CallbackToken: token})
	if err != nil {
		u.t.Error(err)
	}
	credentials, err := json.Marshal(map[string]string{
		"secret_key": key, "callback_token": token, "base_url": u.api.URL, "link": u.link,
	})
	if err != nil {
		u.t.Error(err)
	}
	return sdk.Connection{MerchantID: merchant, Mode: mode, Version: version, Credentials: credentials}
}

// Rotate gives the account a new key and token.
func (u *upstream) Rotate(merchant, mode string) sdk.Connection {
	u.mu.Lock()
	u.versions[merchant+"/"+mode] = max(1, u.versions[merchant+"/"+mode]) + 1
	u.mu.Unlock()
	return u.Connect(merchant, mode)
}

// Movements tells what the simulator has, of outdated keys as merchant "old".
func (u *upstream) Movements(reference string) []sdktest.Movement {
	var movements []sdktest.Movement
	for _, m := range u.env.Movements.All() {
		if m.Reference != reference {
			continue
		}
		owner := strings.Split(m.Destination, "/")
		if u.outdated(m.Destination) {
			owner[0] = "old"
		}
		movements = append(movements, sdktest.Movement{Reference: m.Reference, Amount: m.Amount, Merchant: owner[0], Mode: owner[1]})
	}
	return movements
}

// Requests counts.
func (u *upstream) Requests() int { return int(u.requests.Load()) }

// Fail orders a fault.
func (u *upstream) Fail(f sdktest.Fault) {
	fault := map[sdktest.Fault]kit.Fault{
		sdktest.ErrorBefore: kit.FaultError500, sdktest.CutBefore: kit.FaultDropBefore,
		sdktest.CutAfter: kit.FaultDropAfter, sdktest.GarbageAfter: kit.FaultGarbage,
	}[f]
	if err := u.env.Faults.Add(fault, "", 1); err != nil {
		u.t.Error(err)
	}
}

// Settle pays, and waits for the webhook.
func (u *upstream) Settle(ctx context.Context, reference string) (sdk.Notification, error) {
	came := make(chan sdk.Notification, 1)
	u.mu.Lock()
	u.waiting[reference] = came
	u.mu.Unlock()
	payment, err := u.payable(ctx, reference)
	if err != nil {
		return sdk.Notification{}, err
	}
	if _, err := u.simulator.Pay(payment); err != nil {
		return sdk.Notification{}, err
	}
	select {
	case n := <-came:
		return n, nil
	case <-ctx.Done():
		return sdk.Notification{}, fmt.Errorf("no webhook for %s: %w", reference, ctx.Err())
	}
}

// payable asks the simulator, as the account, what the payer of a reference
// was given.
func (u *upstream) payable(ctx context.Context, reference string) (kit.PayRequest, error) {
	for _, m := range u.env.Movements.All() {
		if m.Reference != reference {
			continue
		}
		var invoices []struct {
			URL string `json:"invoice_url"`
		}
		if err := u.get(ctx, m.Destination, "/v2/invoices?external_id="+reference, &invoices); err != nil {
			return kit.PayRequest{}, err
		}
		if len(invoices) == 1 {
			return kit.PayRequest{URL: invoices[0].URL}, nil
		}
		var code struct {
			QRString string `json:"qr_string"`
		}
		err := u.get(ctx, m.Destination, "/qr_codes/"+reference, &code)
		return kit.PayRequest{QRString: code.QRString}, err
	}
	return kit.PayRequest{}, fmt.Errorf("nothing has the reference %s", reference)
}

func (u *upstream) get(ctx context.Context, account, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.api.URL+path, nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth("xnd_development_"+account, "")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	return json.NewDecoder(response.Body).Decode(into)
}
