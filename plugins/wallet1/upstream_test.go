package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/wallet1/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// upstream is the simulator as the conformance suite wants to see it. The
// partner id of an account there is "merchant-mode".
type upstream struct {
	sdktest.Hanger
	t         *testing.T
	options   sandbox.Options
	env       *kit.Env
	simulator *sandbox.Simulator
	api       *httptest.Server
	hooks     *httptest.Server
	// providerKey is the issuer's public key as PEM.
	providerKey string
	requests    atomic.Int64

	mu       sync.Mutex
	versions map[string]int64
	owners   map[string]string                // partner id by reference
	ends     map[string]chan sdk.Notification // notices of success by reference
}

// openUpstream opens one with options; what comes later comes soon.
func openUpstream(options sandbox.Options) func(*testing.T) sdktest.Upstream {
	options.Delay = 20 * time.Millisecond
	return func(t *testing.T) sdktest.Upstream {
		t.Helper()
		u := &upstream{
			t: t, options: options, versions: map[string]int64{}, owners: map[string]string{}, ends: map[string]chan sdk.Notification{},
		}
		var err error
		if u.env, err = kit.Open(kit.Config{Provider: "wallet1", StateDir: t.TempDir(), Token: "t"}); err != nil {
			t.Fatal(err)
		}
		if u.simulator, err = sandbox.New(u.env, options); err != nil {
			t.Fatal(err)
		}
		u.providerKey = u.learnProviderKey(t)
		u.hooks = httptest.NewServer(http.HandlerFunc(u.receive))
		u.api = httptest.NewServer(u.watch(u.env.Handler(u.simulator)))
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

// moves reports whether a path is one that moves money, in any dialect.
func moves(path string) bool {
	path = strings.TrimSuffix(path, ".htm")
	return strings.HasSuffix(path, "/emoney/topup") || strings.HasSuffix(path, "/emoney/transfer-bank")
}

// watch counts requests, notes whose references money is moved under, and lets
// one that moves some hang if ordered.
func (u *upstream) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.requests.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		if moves(r.URL.Path) {
			var order struct {
				Ref string `json:"partnerReferenceNo"`
			}
			_ = json.Unmarshal(body, &order)
			u.mu.Lock()
			u.owners[order.Ref] = r.Header.Get("X-PARTNER-ID")
			u.mu.Unlock()
			if u.Hangs(r) {
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// receive takes the notices of all accounts.
func (u *upstream) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("read a notice: %v", err)
	}
	var told struct {
		Ref    string `json:"originalPartnerReferenceNo"`
		Status string `json:"latestTransactionStatus"`
	}
	if err := json.Unmarshal(body, &told); err != nil || told.Status != "00" {
		return
	}
	select {
	case u.end(told.Ref) <- sdk.Notification{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body}:
	default: // a second one
	}
}

func (u *upstream) end(reference string) chan sdk.Notification {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ends[reference] == nil {
		u.ends[reference] = make(chan sdk.Notification, 1)
	}
	return u.ends[reference]
}

// merchantKeys are the keys of all accounts, the second for those that have got
// new credentials: making one takes long.
var merchantKeys = []func() (string, error){sync.OnceValues(newKey), sync.OnceValues(newKey)}

func newKey() (string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), err
}

// Connect opens the account, and opens it again for the same names.
func (u *upstream) Connect(merchant, mode string) sdk.Connection {
	name := merchant + "-" + mode
	u.mu.Lock()
	version := max(1, u.versions[name])
	u.versions[name] = version
	u.mu.Unlock()
	key, err := merchantKeys[min(version, 2)-1]()
	if err != nil {
		u.t.Error(err)
	}
	account, err := u.simulator.Open(sandbox.Account{
		ClientID: "client-" + name, ClientSecret: fmt.Sprintf("secret of %s %d", name, version), PartnerID: name, ChannelID: "95221",
		CustomerNumber: "6281100000001", Signature: u.options.Signature, Encoding: u.options.Encoding, PrivateKey: key,
	})
	if err != nil {
		u.t.Error(err)
	}
	err = u.env.Accounts.Register(kit.Account{ID: kit.AccountOf(account.ClientID), Name: name, CallbackURL: u.hooks.URL, CallbackToken: "-"})
	if err != nil {
		u.t.Error(err)
	}
	credentials := map[string]any{
		"base_url": u.api.URL, "dialect": u.options.Dialect, "client_id": account.ClientID, "partner_id": account.PartnerID,
		"channel_id": account.ChannelID, "customer_number": account.CustomerNumber, "signature": account.Signature,
		"client_secret": account.ClientSecret, "signature_encoding": account.Encoding, "private_key": key,
		"provider_public_key": u.providerKey,
	}
	if account.Signature == sandbox.Asymmetric {
		delete(credentials, "client_secret")
	}
	encoded, err := json.Marshal(credentials)
	if err != nil {
		u.t.Error(err)
	}
	return sdk.Connection{MerchantID: merchant, Mode: mode, Version: version, Credentials: encoded}
}

// learnProviderKey reads the issuer's public key where it is told: in the
// credentials of an account that nobody uses.
func (u *upstream) learnProviderKey(t *testing.T) string {
	t.Helper()
	var told struct {
		Key string `json:"provider_public_key"`
	}
	encoded, err := json.Marshal(u.simulator.Connect("nobody", "-", "http://127.0.0.1:1").Credentials)
	if err == nil {
		err = json.Unmarshal(encoded, &told)
	}
	if err != nil || told.Key == "" {
		t.Fatalf("the simulator tells no key: %v", err)
	}
	return told.Key
}

// Rotate gives the account a new secret, or where it signs without one a new
// key.
func (u *upstream) Rotate(merchant, mode string) sdk.Connection {
	u.mu.Lock()
	u.versions[merchant+"-"+mode] = max(1, u.versions[merchant+"-"+mode]) + 1
	u.mu.Unlock()
	return u.Connect(merchant, mode)
}

// Movements tells whose money moved.
func (u *upstream) Movements(reference string) []sdktest.Movement {
	var movements []sdktest.Movement
	for _, m := range u.env.Movements.All() {
		if m.Reference != reference {
			continue
		}
		u.mu.Lock()
		merchant, mode, _ := strings.Cut(u.owners[reference], "-")
		u.mu.Unlock()
		movements = append(movements, sdktest.Movement{Reference: m.Reference, Amount: m.Amount, Merchant: merchant, Mode: mode})
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

// Settle waits for the notice: what was taken succeeds by itself.
func (u *upstream) Settle(ctx context.Context, reference string) (sdk.Notification, error) {
	select {
	case n := <-u.end(reference):
		return n, nil
	case <-ctx.Done():
		return sdk.Notification{}, fmt.Errorf("no notice for %s: %w", reference, ctx.Err())
	}
}
