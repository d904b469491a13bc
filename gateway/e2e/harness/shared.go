package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// shared is the gerbang dev of this test process, and the life it has.
var shared struct {
	once    sync.Once
	policy  func(testing.TB, string)
	life    *lifetime
	program *Program
}

// SharePolicy gives the shared gateway another policy: write fills the policy's directory before it starts. TestMain
// calls it before Main.
func SharePolicy(write func(t testing.TB, dir string)) { shared.policy = write }

// Shared returns the gerbang dev that the stories of a package use together. The first story that asks starts it, with
// all rates lifted, and Main stops it after the last test. A story on it works with merchants of its own (NewMerchant)
// and counts nothing that others change: it neither injects a provider's faults nor reads the whole list of upstream
// movements as its own.
func Shared(t testing.TB) *Program {
	t.Helper()
	shared.once.Do(func() {
		shared.life = &lifetime{TB: t}
		dir := shared.life.TempDir()
		if shared.policy != nil {
			shared.policy(t, dir)
		} else {
			(&PolicyData{File: filepath.Join(dir, "data.json")}).LiftRates(t)
		}
		shared.program = Start(shared.life, Settings{Flags: []string{"--policy-dir", dir}})
	})
	if shared.program == nil {
		t.Fatal("the gateway of this package did not start")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the shared gateway's log:\n%s", shared.program.Log.Tail(40))
		}
	})
	return shared.program
}

// endShared stops the shared gateway, and reports whether it ended as it should.
func endShared() bool {
	if shared.life == nil {
		return true
	}
	shared.life.end()
	return !shared.life.Failed()
}

// lifetime is the testing.TB of what outlives a test: it begins as the test that starts it, and its cleanups run after
// the last test of the process.
type lifetime struct {
	testing.TB // whose failure a failed start is

	mu       sync.Mutex
	cleanups []func()
	ended    bool // the tests have ended: failures go to standard error
	failed   bool
}

// Cleanup keeps a function for the end of the process's tests.
func (l *lifetime) Cleanup(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cleanups = append(l.cleanups, f)
}

// Context does not end with the test that began.
func (l *lifetime) Context() context.Context { return context.WithoutCancel(l.TB.Context()) }

// TempDir makes a directory that is removed after the last test.
func (l *lifetime) TempDir() string {
	dir, err := os.MkdirTemp("", "gerbang-shared-")
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			l.Error(err)
		}
	})
	inner := filepath.Join(dir, "001") // as in Go's own, whose parent DataDir opens
	if err := os.Mkdir(inner, 0o755); err != nil {
		l.Fatal(err)
	}
	return inner
}

func (l *lifetime) Error(arguments ...any) {
	l.TB.Helper()
	l.fail(fmt.Sprintln(arguments...))
}

func (l *lifetime) Errorf(format string, arguments ...any) {
	l.TB.Helper()
	l.fail(fmt.Sprintf(format, arguments...))
}

func (l *lifetime) fail(text string) {
	l.TB.Helper()
	l.mu.Lock()
	ended := l.ended
	l.failed = true
	l.mu.Unlock()
	if !ended {
		l.TB.Error(text)
		return
	}
	fmt.Fprintln(os.Stderr, "the shared gateway:", strings.TrimSpace(text))
}

func (l *lifetime) Logf(format string, arguments ...any) {
	l.TB.Helper()
	l.mu.Lock()
	ended := l.ended
	l.mu.Unlock()
	if !ended {
		l.TB.Logf(format, arguments...)
		return
	}
	fmt.Fprintf(os.Stderr, format+"\n", arguments...)
}

func (l *lifetime) Failed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// end runs the cleanups, the last first.
func (l *lifetime) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	for {
		l.mu.Lock()
		if len(l.cleanups) == 0 {
			l.mu.Unlock()
			return
		}
		last := l.cleanups[len(l.cleanups)-1]
		l.cleanups = l.cleanups[:len(l.cleanups)-1]
		l.mu.Unlock()
		last()
	}
}

// NewShop is a shop of a merchant of its own (NewMerchant), in mode live or test.
func NewShop(t testing.TB, p *Program, mode string, providers ...string) Shop {
	t.Helper()
	return p.Of(NewMerchant(t, p, providers...), mode)
}

// Opening is the balance that NewMerchant gives in each mode, as gerbang dev does for its demo merchants.
const Opening = 10_000_000

// NewMerchant makes a merchant of tier scale at a gerbang dev, and gives it what the demo merchants have: an account in
// both modes at each of the providers of which merchants have their own, and a balance in both modes. Its secrets are
// searched for in the log.
func NewMerchant(t testing.TB, p *Program, providers ...string) Merchant {
	t.Helper()
	m := p.NewMerchant(t)
	for _, mode := range []string{"live", "test"} {
		for _, provider := range providers {
			p.ConnectDev(t, m.MerchantID, provider, mode, nil)
		}
		order := adminapi.NewAdjustment{Merchant: m.MerchantID, Mode: mode, Amount: money.Amount(Opening), Reason: "to try orders with", Reference: uuid.NewString()}
		if _, err := adminapi.Credit.Call(t.Context(), p.Admin(), order); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// Of is the shop of a merchant in mode live or test.
func (p *Program) Of(m Merchant, mode string) Shop {
	if mode == "live" {
		return Shop{p, m.MerchantID, m.LiveKey}
	}
	return Shop{p, m.MerchantID, m.TestKey}
}

// ConnectDev gives a merchant an account at a provider's simulator of a gerbang dev, with settings of the connection
// added, and returns its name there.
func (p *Program) ConnectDev(t testing.TB, merchantID, provider, mode string, settings Fields) string {
	t.Helper()
	var opened struct {
		Account       string `json:"account"`
		CallbackToken string `json:"callback_token"`
		Credentials   Fields `json:"credentials"`
	}
	p.control(t, provider, "connect", Fields{"merchant": merchantID, "mode": mode}, &opened)
	credentials, err := json.Marshal(opened.Credentials.With(settings))
	if err != nil {
		t.Fatal(err)
	}
	connection, err := adminapi.SetConnection.Call(t.Context(), p.Admin(), adminapi.ConnectionSpec{Merchant: merchantID, Provider: provider, Mode: mode, Credentials: credentials})
	if err != nil {
		t.Fatal(err)
	}
	p.control(t, provider, "hooks", Fields{
		"account": opened.Account, "name": "Toko Contoh", "callback_url": p.APIURL + connection.NotifyPath, "callback_token": opened.CallbackToken,
	}, nil)
	return opened.Account
}

// control calls the control API of a simulator that gerbang dev has started, past the door that people use.
func (p *Program) control(t testing.TB, provider, order string, body Fields, into any) {
	t.Helper()
	var state struct {
		SandboxToken string            `json:"sandbox_token"`
		Addresses    map[string]string `json:"addresses"`
	}
	content, err := os.ReadFile(filepath.Join(p.Data, "dev.json"))
	if err = errors.Join(err, json.Unmarshal(content, &state)); err != nil {
		t.Fatal(err)
	}
	sent, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+state.Addresses[provider]+"/_sandbox/"+order, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+state.SandboxToken)
	response, err := HTTPClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answered json.RawMessage
	if err := json.NewDecoder(response.Body).Decode(&answered); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the simulator of %s: %s: %d %s, %v", provider, order, response.StatusCode, answered, err)
	}
	if into != nil {
		if err := json.Unmarshal(answered, into); err != nil {
			t.Fatal(err)
		}
	}
}
