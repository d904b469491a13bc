package main

import (
	"bytes"
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
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk/sdktest"
)

// upstream is the simulator as the conformance suite wants to see it. The
// username of an account there is "merchant-mode".
type upstream struct {
	sdktest.Hanger
	t        *testing.T
	env      *kit.Env
	buyers   *sandbox.Simulator
	api      *httptest.Server
	hooks    *httptest.Server
	requests atomic.Int64

	mu       sync.Mutex
	versions map[string]int64
	owners   map[string]string                // username by reference
	results  map[string]chan sdk.Notification // webhooks of success by reference
}

func openUpstream(t *testing.T) sdktest.Upstream {
	t.Helper()
	u := &upstream{
		t: t, versions: map[string]int64{}, owners: map[string]string{}, results: map[string]chan sdk.Notification{},
	}
	var err error
	if u.env, err = kit.Open(kit.Config{Provider: "ppob", StateDir: t.TempDir(), Token: "t"}); err != nil {
		t.Fatal(err)
	}
	// The suite asks at once and often, and wants to be told of everything.
	options := sandbox.DefaultOptions()
	options.Delay, options.PollEvery, options.ListEvery, options.AnnounceAll = 20*time.Millisecond, 0, 0, true
	if u.buyers, err = sandbox.New(u.env, options); err != nil {
		t.Fatal(err)
	}
	u.hooks = httptest.NewServer(http.HandlerFunc(u.receive))
	u.api = httptest.NewServer(u.watch(u.env.Handler(u.buyers)))
	t.Cleanup(func() {
		u.api.Close()
		if err := u.env.Close(); err != nil {
			t.Error(err)
		}
		u.hooks.Close()
	})
	return u
}

// watch counts requests, notes whose references are bought under, and lets one
// that buys hang if ordered.
func (u *upstream) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.requests.Add(1)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		var order struct {
			Command  string `json:"commands"`
			Username string `json:"username"`
			Ref      string `json:"ref_id"`
		}
		_ = json.Unmarshal(body, &order)
		if r.URL.Path == "/v1/transaction" && (order.Command == "" || order.Command == "pay-pasca") {
			u.mu.Lock()
			u.owners[order.Ref] = order.Username
			u.mu.Unlock()
			if u.Hangs(r) {
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		next.ServeHTTP(w, r)
	})
}

// receive takes the webhooks of all accounts and keeps the first success of
// each reference.
func (u *upstream) receive(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("read a webhook: %v", err)
	}
	var told struct {
		Data struct {
			Ref    string `json:"ref_id"`
			Status string `json:"status"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &told); err != nil || told.Data.Status != "Sukses" {
		return
	}
	select {
	case u.result(told.Data.Ref) <- sdk.Notification{Method: r.Method, Query: r.URL.RawQuery, Header: r.Header, Body: body}:
	default: // a second one
	}
}

func (u *upstream) result(reference string) chan sdk.Notification {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.results[reference] == nil {
		u.results[reference] = make(chan sdk.Notification, 1)
	}
	return u.results[reference]
}

// Connect opens the account, and opens it again for the same names.
func (u *upstream) Connect(merchant, mode string) sdk.Connection {
	name := merchant + "-" + mode
	u.mu.Lock()
	version := max(1, u.versions[name])
	u.versions[name] = version
	u.mu.Unlock()
	buyer := sandbox.Buyer{Username: name, APIKey: fmt.Sprintf("dev-%s-%d", name, version), WebhookSecret: "secret of " + name}
	err := u.env.Accounts.Register(kit.Account{
		ID: kit.AccountOf(name), Name: name, CallbackURL: u.hooks.URL, CallbackToken: buyer.WebhookSecret,
	})
	if err != nil {
		u.t.Error(err)
	}
	if err := u.buyers.Open(buyer); err != nil {
		u.t.Error(err)
	}
	credentials, err := json.Marshal(map[string]any{
		"username": name, "api_key": buyer.APIKey, "webhook_secret": buyer.WebhookSecret, "base_url": u.api.URL + "/v1", "testing": true,
	})
	if err != nil {
		u.t.Error(err)
	}
	return sdk.Connection{MerchantID: merchant, Mode: mode, Version: version, Credentials: credentials}
}

// Rotate gives the account a new key.
func (u *upstream) Rotate(merchant, mode string) sdk.Connection {
	u.mu.Lock()
	u.versions[merchant+"-"+mode] = max(1, u.versions[merchant+"-"+mode]) + 1
	u.mu.Unlock()
	return u.Connect(merchant, mode)
}

// Movements tells what was bought: what failed moved nothing.
func (u *upstream) Movements(reference string) []sdktest.Movement {
	var movements []sdktest.Movement
	for _, m := range u.env.Movements.All() {
		if m.Reference != reference || m.State == "Gagal" {
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

// Settle waits for the webhook: what is bought succeeds by itself.
func (u *upstream) Settle(ctx context.Context, reference string) (sdk.Notification, error) {
	select {
	case n := <-u.result(reference):
		return n, nil
	case <-ctx.Done():
		return sdk.Notification{}, fmt.Errorf("no webhook for %s: %w", reference, ctx.Err())
	}
}
