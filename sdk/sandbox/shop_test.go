package sandbox_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// shop is the smallest upstream: POST /buy moves money, GET /count does not.
type shop struct {
	env   *sandbox.Env
	topic *sandbox.Topic[string]
}

func newShop(env *sandbox.Env) (sandbox.Upstream, error) {
	s := &shop{env: env}
	s.topic = sandbox.NewTopic(env.Journal, "bought", func(what string) {
		env.Movements.Record(what, sandbox.Movement{Reference: what, Amount: 500, State: "DONE"})
	})
	return s, env.Begin()
}

// Handler implements sandbox.Upstream.
func (s *shop) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /buy", s.env.Faults.Wrap("buy", true, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		what, err := io.ReadAll(r.Body)
		if err == nil {
			err = s.env.Journal.Append(s.topic.Entry(string(what))).Wait()
		}
		if err != nil {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		_, _ = io.WriteString(w, "bought "+string(what))
	})))
	mux.Handle("GET /count", s.env.Faults.Wrap("count", false, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "counted")
	})))
	return mux
}

// Pay implements sandbox.Upstream.
func (s *shop) Pay(request sandbox.PayRequest) (sandbox.Receipt, error) {
	switch request.QRString + request.URL {
	case "good":
		amount := money.Amount(500)
		if request.Amount != nil {
			amount = *request.Amount
		}
		return sandbox.Receipt{Reference: "R", Amount: amount, State: "PAID"}, nil
	case "paid":
		return sandbox.Receipt{}, &sandbox.NotPayable{Reason: "it is paid"}
	case "broken":
		return sandbox.Receipt{}, errors.New("broken")
	default:
		return sandbox.Receipt{}, sandbox.ErrUnknown
	}
}

// Describe implements sandbox.Upstream.
func (s *shop) Describe(base string) sandbox.Description {
	return sandbox.Description{Prefixes: []string{base + "/web/"}, Magic: []sandbox.Magic{{Value: "7", Effect: "luck"}}}
}

// world is a shop that listens.
type world struct {
	t     *testing.T
	env   *sandbox.Env
	url   string
	close func()
}

func openShop(t *testing.T, clock sandbox.Clock) *world {
	t.Helper()
	w := openShopIn(t, t.TempDir(), clock)
	t.Cleanup(w.close)
	return w
}

// openShopIn opens a shop that its caller closes.
func openShopIn(t *testing.T, dir string, clock sandbox.Clock) *world {
	t.Helper()
	env, err := sandbox.Open(sandbox.Config{Provider: "demo", StateDir: dir, Token: "open", Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	up, err := newShop(env)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(env.Handler(up))
	return &world{t, env, server.URL, func() {
		server.Close()
		closeEnv(t, env)
	}}
}

// call returns status and body, or the error of a cut connection.
func (w *world) call(method, path, token, body string) (int, string, error) {
	w.t.Helper()
	request, err := http.NewRequestWithContext(w.t.Context(), method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, strings.TrimSpace(string(text)), err
}
