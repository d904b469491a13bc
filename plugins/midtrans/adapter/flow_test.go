package adapter

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/midtrans/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// world is the simulator, the adapter, and a clock for both.
type world struct {
	*testing.T
	adapter   *adapter
	upstream  stub
	clock     *kit.ManualClock
	env       *kit.Env
	simulator *sandbox.Simulator
	close     func()
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{T: t, clock: kit.NewManualClock(today)}
	w.adapter = &adapter{now: w.clock.Now}
	w.open(t.TempDir())
	return w
}

func (w *world) open(dir string) {
	w.Helper()
	var err error
	if w.env, err = kit.Open(kit.Config{Provider: "midtrans", StateDir: dir, Token: "t", Clock: w.clock}); err != nil {
		w.Fatal(err)
	}
	w.close = sync.OnceFunc(func() {
		if err := w.env.Close(); err != nil {
			w.Error(err)
		}
	})
	w.Cleanup(w.close)
	if w.simulator, err = sandbox.New(w.env); err != nil {
		w.Fatal(err)
	}
	server := httptest.NewServer(w.env.Handler(w.simulator))
	w.Cleanup(server.Close)
	w.upstream.url = server.URL
}

func (w *world) stands(body, known string, want sdk.Status) {
	w.Helper()
	if got := w.adapter.lookup(w.Context(), w.upstream.lookup(w.T, body, known, today)); got.Status != want {
		w.Errorf("by %q: %+v, want %v", known, got, want)
	}
}

// made creates a payment and tells what its payer is given.
func (w *world) made(body string) (p payable) {
	w.Helper()
	r := w.adapter.create(w.Context(), w.upstream.call(w.T, body))
	if err := json.Unmarshal(r.Data, &p); err != nil || r.Outcome != sdk.Pending {
		w.Fatalf("%+v: %v", r, err)
	}
	return p
}

// choose has the payer of a link choose how to pay.
func (w *world) choose(url string) {
	w.Helper()
	w.order("choose", `{"url":"`+url+`"}`)
}

// order gives the simulator one of its own orders.
func (w *world) order(name, body string) {
	w.Helper()
	request, err := http.NewRequestWithContext(w.Context(), http.MethodPost, w.upstream.url+"/_sandbox/"+name, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer t")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(answer.Body)
		w.Fatalf("%s: %d %s", name, answer.StatusCode, said)
	}
}

func (w *world) pay(p payable) {
	w.Helper()
	if _, err := w.simulator.Pay(kit.PayRequest{URL: p.PaymentURL, QRString: p.QRString}); err != nil {
		w.Fatal(err)
	}
}

// TestALinkFromItsCreationToItsPayment, as the upstream knows it: nothing, a choice, a
// payment.
func TestALinkFromItsCreationToItsPayment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	link := w.made(aLink)
	w.stands(aLink, reference, sdk.StatusPending)
	w.stands(aLink, "", sdk.StatusUnknown)
	again := w.adapter.create(t.Context(), w.upstream.call(t, aLink))
	if again.Outcome != sdk.Unknown {
		t.Errorf("made again: %+v", again)
	}
	w.choose(link.PaymentURL)
	w.stands(aLink, "", sdk.StatusPending)
	w.pay(link)
	w.stands(aLink, "", sdk.StatusDone)
	if all := w.env.Movements.All(); len(all) != 1 || all[0].State != "settlement" {
		t.Errorf("the upstream has %+v", all)
	}
}

func TestALinkThatNobodyPays(t *testing.T) {
	t.Parallel()
	for name, chosen := range map[string]bool{"untouched": false, "chosen": true} {
		w := newWorld(t)
		link := w.made(aLink)
		if chosen {
			w.choose(link.PaymentURL)
		}
		w.clock.Advance(time.Hour + overMargin + time.Second)
		w.stands(aLink, "", sdk.StatusExpired)
		w.stands(aLink, reference, sdk.StatusExpired)
		if _, err := w.simulator.Pay(kit.PayRequest{URL: link.PaymentURL}); err == nil {
			t.Errorf("%s: it was paid after its life", name)
		}
	}
}

// TestTheSimulatorSurvives: what it has answered is there after a restart.
func TestTheSimulatorSurvives(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	code := w.made(aQRIS)
	dir := w.env.StateDir
	w.pay(code)
	w.close()
	w.open(dir)
	w.stands(aQRIS, "", sdk.StatusDone)
}
