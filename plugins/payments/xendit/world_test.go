package xendit

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// world is the simulator with one account, the adapter, and a clock for both.
type world struct {
	*testing.T
	*adapter
	clock      *kit.ManualClock
	env        *kit.Env
	simulator  *sandbox.Simulator
	connection sdk.Connection
	hooks      chan sdk.Notification
	arrived    chan struct{} // the first request is there
}

func newWorld(t *testing.T, options sandbox.Options) *world {
	t.Helper()
	w := &world{T: t, clock: kit.NewManualClock(today), hooks: make(chan sdk.Notification, 16), arrived: make(chan struct{})}
	w.adapter = &adapter{now: w.clock.Now}
	var err error
	w.env, err = kit.Open(kit.Config{Provider: "payments", StateDir: t.TempDir(), Token: "t", Clock: w.clock})
	if err != nil {
		t.Fatal(err)
	}
	w.simulator, err = sandbox.New(w.env, options)
	if err != nil {
		t.Fatal(err)
	}
	handler, first := w.env.Handler(w.simulator), sync.OnceFunc(func() { close(w.arrived) })
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		first()
		handler.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() {
		api.Close()
		if err := w.env.Close(); err != nil {
			t.Error(err)
		}
	})
	w.connection = connect(t, api.URL)
	w.receive()
	return w
}

// receive takes the webhooks of the account and keeps them for the test.
func (w *world) receive() {
	w.Helper()
	url := serve(w.T, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.Errorf("read a webhook: %v", err)
		}
		w.hooks <- sdk.Notification{Connection: w.connection, Method: r.Method, Header: r.Header, Body: body}
	})
	err := w.env.Accounts.Register(kit.Account{ID: kit.AccountOf(testKey), Name: "Toko Contoh", CallbackURL: url, CallbackToken: testToken})
	if err != nil {
		w.Fatal(err)
	}
}

// next gives the next webhook to the adapter.
func (w *world) next() sdk.Acknowledgement {
	w.Helper()
	select {
	case n := <-w.hooks:
		return w.notify(w.Context(), n)
	case <-w.Context().Done():
		w.Fatal("no webhook came")
	case <-time.After(10 * time.Second):
		w.Fatal("no webhook came")
	}
	return sdk.Acknowledgement{}
}

func (w *world) call(body string, amount money.Amount) sdk.Call {
	call := createCall(w.connection, body)
	call.Amount = amount
	return call
}

// made creates a payment and insists that it is pending.
func (w *world) made(body string, amount money.Amount) sdk.Result {
	w.Helper()
	result := w.create(w.Context(), w.call(body, amount))
	if result.Outcome != sdk.Pending {
		w.Fatalf("create: %+v", result)
	}
	return result
}

// pay pays as the payer would.
func (w *world) pay(result sdk.Result) {
	w.Helper()
	var p payable
	if err := json.Unmarshal(result.Data, &p); err != nil {
		w.Fatal(err)
	}
	if _, err := w.simulator.Pay(kit.PayRequest{URL: p.PaymentURL, QRString: p.QRString}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) find(body string, amount money.Amount, providerReference string) sdk.StatusUpdate {
	w.Helper()
	l := lookupOf(w.connection, body, providerReference)
	l.Amount = amount
	return w.lookup(w.Context(), l)
}

// stands insists on how the movement stands, asked both ways.
func (w *world) stands(body string, result sdk.Result, amount money.Amount, want sdk.Status) {
	w.Helper()
	for _, providerReference := range []string{"", result.ProviderReference} {
		found := w.find(body, amount, providerReference)
		if found.Status != want || found.Amount != amount || found.Reference != reference ||
			found.Currency != "IDR" || found.ProviderReference != result.ProviderReference {
			w.Errorf("by %q: %+v, want status %v", providerReference, found, want)
		}
	}
}

// only insists on one status update of a webhook.
func (w *world) only(ack sdk.Acknowledgement, status sdk.Status, amount money.Amount) sdk.StatusUpdate {
	w.Helper()
	if ack.Status != http.StatusOK || len(ack.Updates) != 1 || ack.Updates[0].Status != status ||
		ack.Updates[0].Amount != amount || ack.Updates[0].Reference != reference || ack.Updates[0].Currency != "IDR" {
		w.Fatalf("webhook: %+v, want status %v", ack, status)
	}
	return ack.Updates[0]
}

// exist insists on how many movements the upstream has.
func (w *world) exist(want int) {
	w.Helper()
	if all := w.env.Movements.All(); len(all) != want {
		w.Errorf("the upstream has %+v, want %d", all, want)
	}
}
