package sandbox_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// receiver answers webhooks in place of the network and writes them down.
type receiver struct {
	began  time.Time
	status func(n int) int // zero is a connection that fails

	mu  sync.Mutex
	got []string
}

// RoundTrip implements http.RoundTripper.
func (r *receiver) RoundTrip(request *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = append(r.got, fmt.Sprintf("%v %s %s %s %s", time.Since(r.began), request.URL,
		request.Header.Get("token"), request.Header.Get("webhook-id"), body))
	status := r.status(len(r.got))
	if status == 0 {
		return nil, errors.New("cut")
	}
	return &http.Response{StatusCode: status, Body: io.NopCloser(strings.NewReader("ok")), Request: request}, nil
}

// seconds returns when each try came.
func (r *receiver) seconds() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]string, len(r.got))
	for i, line := range r.got {
		out[i], _, _ = strings.Cut(line, " ")
	}
	return out
}

func always(status int) func(int) int { return func(int) int { return status } }

// hookWorld opens an Env whose webhooks go to r; account "key" is registered.
func hookWorld(t *testing.T, dir string, r *receiver) *sandbox.Env {
	t.Helper()
	r.began = time.Now()
	env, err := sandbox.Open(sandbox.Config{
		Provider: "demo", StateDir: dir, Token: "t", Client: &http.Client{Transport: r},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := env.Begin(); err != nil {
		t.Fatal(err)
	}
	register(t, env, "http://merchant.test/hook")
	return env
}

func register(t *testing.T, env *sandbox.Env, url string) {
	t.Helper()
	err := env.Accounts.Register(sandbox.Account{ID: sandbox.AccountOf("key"), CallbackURL: url, CallbackToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
}

func message(body string, after time.Duration) sandbox.Webhook {
	return sandbox.Webhook{
		Account: sandbox.AccountOf("key"), TokenHeader: "token", Header: map[string]string{"webhook-id": "w1"},
		Body: []byte(body), At: time.Now().Add(after),
	}
}

func queue(t *testing.T, env *sandbox.Env, hooks ...sandbox.Webhook) {
	t.Helper()
	entries := make([]sandbox.Entry, len(hooks))
	for i, h := range hooks {
		entries[i] = env.Webhooks.Entry(h)
	}
	if err := env.Journal.Append(entries...).Wait(); err != nil {
		t.Fatal(err)
	}
}

func closeEnv(t *testing.T, env *sandbox.Env) {
	t.Helper()
	if err := env.Close(); err != nil {
		t.Error(err)
	}
}

func TestWebhookRetriesUntilAccepted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: func(n int) int { return []int{500, 0, 302, 204}[n-1] }}
		env := hookWorld(t, t.TempDir(), r)
		queue(t, env, message(`{"a":1}`, 0))
		time.Sleep(time.Hour)
		closeEnv(t, env)
		if want := []string{"0s", "1s", "3s", "7s"}; !slices.Equal(r.seconds(), want) {
			t.Errorf("tries at %v, want %v", r.seconds(), want)
		}
		if want := `7s http://merchant.test/hook secret w1 {"a":1}`; r.got[3] != want {
			t.Errorf("sent %q, want %q", r.got[3], want)
		}
	})
}

func TestWebhookGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: always(500)}
		env := hookWorld(t, t.TempDir(), r)
		queue(t, env, message(`{}`, 0))
		time.Sleep(24 * time.Hour)
		closeEnv(t, env)
		if len(r.got) != 10 {
			t.Errorf("%d tries: %v", len(r.got), r.seconds())
		}
	})
}

func TestWebhookOrderAndDuplicates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: always(200)}
		env := hookWorld(t, t.TempDir(), r)
		queue(t, env, message(`{"n":1}`, 2*time.Second), message(`{"n":2}`, 0), message(`{"n":2}`, time.Second))
		time.Sleep(time.Minute)
		closeEnv(t, env)
		want := []string{
			`0s http://merchant.test/hook secret w1 {"n":2}`,
			`1s http://merchant.test/hook secret w1 {"n":2}`,
			`2s http://merchant.test/hook secret w1 {"n":1}`,
		}
		if !slices.Equal(r.got, want) {
			t.Errorf("got %q", r.got)
		}
	})
}

// TestWebhookGoesOnAfterARestart also moves the receiver meanwhile, as a
// gateway does that comes back on another port.
func TestWebhookGoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		down := &receiver{status: always(503)}
		env := hookWorld(t, dir, down)
		queue(t, env, message(`{"n":1}`, 0), message(`{"n":2}`, 30*time.Second))
		time.Sleep(2 * time.Second)
		closeEnv(t, env)
		time.Sleep(time.Second)
		up := &receiver{status: always(200)}
		env = hookWorld(t, dir, up)
		register(t, env, "http://moved.test/hook")
		queue(t, env, sandbox.Webhook{Account: "nobody", URL: "http://own.test/", Body: []byte(`{"n":3}`), At: time.Now()})
		time.Sleep(time.Hour)
		closeEnv(t, env)
		if want := []string{"0s", "1s"}; !slices.Equal(down.seconds(), want) {
			t.Errorf("before: %v, want %v", down.seconds(), want)
		}
		slices.Sort(up.got)
		if len(up.got) != 3 || !strings.HasPrefix(up.got[0], "0s http://") ||
			!slices.Contains(up.got, `27s http://moved.test/hook secret w1 {"n":2}`) {
			t.Errorf("after: %q", up.got)
		}
		env = hookWorld(t, dir, &receiver{status: func(int) int { t.Error("sent again"); return 200 }})
		time.Sleep(time.Hour)
		closeEnv(t, env)
	})
}

// TestWebhookWithoutAddressWaits has an account that registers late.
func TestWebhookWithoutAddressWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: always(200)}
		env := hookWorld(t, t.TempDir(), r)
		register(t, env, "")
		queue(t, env, message(`{}`, 0))
		time.Sleep(1500 * time.Millisecond)
		register(t, env, "http://late.test/")
		time.Sleep(time.Minute)
		closeEnv(t, env)
		if want := []string{`3s http://late.test/ secret w1 {}`}; !slices.Equal(r.got, want) {
			t.Errorf("got %q", r.got)
		}
	})
}

// Who waits for the webhooks that are due waits for one try of each, and not
// for those of later, nor for a receiver that never answers well.
func TestTriedWaitsForWhatIsDue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: always(500)}
		env := hookWorld(t, t.TempDir(), r)
		queue(t, env, message(`{"a":1}`, 0), message(`{"a":2}`, 0), message(`{"a":3}`, time.Minute))
		env.Webhooks.Tried(t.Context())
		if got := len(r.seconds()); got != 2 {
			t.Errorf("%d tries when it returned, want 2", got)
		}
		if waited := time.Since(r.began); waited >= time.Second {
			t.Errorf("it waited %v, for a second try or a later webhook", waited)
		}
		closeEnv(t, env)
	})
}

// TestWebhookSignature has a published body and secret; nonsense is signed too.
func TestWebhookSignature(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &receiver{status: always(200)}
		env := hookWorld(t, t.TempDir(), r)
		account := sandbox.Account{ID: sandbox.AccountOf("key"), CallbackURL: "http://merchant.test/hook", CallbackToken: "somesecretvalue"}
		if err := env.Accounts.Register(account); err != nil {
			t.Fatal(err)
		}
		signed := sandbox.Webhook{Account: account.ID, SignatureHeader: "token", At: time.Now()}
		signed.Body = []byte(`{"data":{"ref_id":"some1d","status":"Sukses","rc":"00"}}`)
		garbage := signed
		garbage.Garbage, garbage.Body, garbage.At = "{%", nil, signed.At.Add(time.Second)
		queue(t, env, signed, garbage)
		time.Sleep(time.Minute)
		account.CallbackToken = ""
		if err := env.Accounts.Register(account); err != nil {
			t.Fatal(err)
		}
		unsigned := signed
		unsigned.At = time.Now()
		queue(t, env, unsigned)
		time.Sleep(time.Minute)
		closeEnv(t, env)
		want := []string{
			"0s http://merchant.test/hook sha1=89a25691722fe8a4dd35293dd321cd48e961f0b0  " + string(signed.Body),
			"1s http://merchant.test/hook sha1=e520aea4cc7326b028a98a5345c1749a6bd83bf5  {%",
			"1m0s http://merchant.test/hook   " + string(signed.Body),
		}
		if !slices.Equal(r.got, want) {
			t.Errorf("got %q", r.got)
		}
	})
}
