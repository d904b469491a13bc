package digiflazz

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/plugins/ppob/sandbox"
	"github.com/seed-f006e74d/gerbang/sdk"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// world is the simulator with one account, the adapter, and a clock for both.
type world struct {
	*testing.T
	*adapter
	clock      *kit.ManualClock
	env        *kit.Env
	connection sdk.Connection
	hooks      chan sdk.Notification
	items      map[string]json.RawMessage
}

func newWorld(t *testing.T, change ...func(*sandbox.Options)) *world {
	t.Helper()
	w := &world{T: t, clock: kit.NewManualClock(today), hooks: make(chan sdk.Notification, 16), items: map[string]json.RawMessage{}}
	w.adapter = &adapter{now: w.clock.Now}
	var err error
	if w.env, err = kit.Open(kit.Config{Provider: "ppob", StateDir: t.TempDir(), Token: "t", Clock: w.clock}); err != nil {
		t.Fatal(err)
	}
	options := sandbox.DefaultOptions()
	for _, c := range change {
		c(&options)
	}
	buyers, err := sandbox.New(w.env, options)
	if err != nil {
		t.Fatal(err)
	}
	api := httptest.NewServer(w.env.Handler(buyers))
	t.Cleanup(func() {
		api.Close()
		if err := w.env.Close(); err != nil {
			t.Error(err)
		}
	})
	hooks := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read a webhook: %v", err)
		}
		w.hooks <- sdk.Notification{Connection: w.connection, Method: r.Method, Header: r.Header, Body: body}
	})
	w.connection = connect(t, api.URL+"/v1")
	err = w.env.Accounts.Register(kit.Account{ID: kit.AccountOf(testUser), Name: testUser, CallbackURL: hooks, CallbackToken: testSecret})
	if err != nil {
		t.Fatal(err)
	}
	if err := buyers.Open(sandbox.Buyer{Username: testUser, APIKey: testKey, WebhookSecret: testSecret}); err != nil {
		t.Fatal(err)
	}
	w.list()
	return w
}

// list reads the products, as the gateway's cache has them.
func (w *world) list() {
	w.Helper()
	result := w.products(w.Context(), sdk.Call{Connection: w.connection})
	var items []json.RawMessage
	if err := json.Unmarshal(result.Data, &items); err != nil {
		w.Fatalf("%+v, %v", result, err)
	}
	for _, document := range items {
		var i item
		if err := json.Unmarshal(document, &i); err != nil {
			w.Fatal(err)
		}
		w.items[i.SKU] = document
	}
}

// quoted asks for a price and gives the call that it is for.
func (w *world) quoted(sku, target string) sdk.Call {
	w.Helper()
	body := fmt.Sprintf(`{"sku":%q,"target":%q,"qty":50000}`, sku, target)
	q := w.quote(w.Context(), quoteOf(w.connection, string(w.items[sku]), body))
	if q.Outcome != sdk.Done {
		w.Fatalf("quote: %+v", q)
	}
	return callOf(w.connection, string(q.Data), q.Cost)
}

// ordered orders and insists on the outcome.
func (w *world) ordered(call sdk.Call, want sdk.Outcome) sdk.Result {
	w.Helper()
	result := w.order(w.Context(), call)
	if result.Outcome != want {
		w.Fatalf("order: %+v, want %v", result, want)
	}
	return result
}

func (w *world) found(call sdk.Call, want sdk.Status) sdk.StatusUpdate {
	w.Helper()
	l := lookupOf(w.connection, string(call.Quote), call.Cost)
	l.SentAt = today
	f := w.lookup(w.Context(), l)
	if f.Status != want {
		w.Fatalf("found %+v, want %v", f, want)
	}
	return f
}

// next gives the next webhook to the adapter.
func (w *world) next() sdk.Acknowledgement {
	w.Helper()
	select {
	case n := <-w.hooks:
		return w.notify(w.Context(), n)
	case <-time.After(10 * time.Second):
		w.Fatal("no webhook came")
	}
	return sdk.Acknowledgement{}
}

// heard insists on one status update in the next webhook.
func (w *world) heard(want sdk.Status) sdk.StatusUpdate {
	w.Helper()
	ack := w.next()
	if ack.Status != http.StatusOK || len(ack.Updates) != 1 || ack.Updates[0].Status != want {
		w.Fatalf("webhook: %+v, want %v", ack, want)
	}
	return ack.Updates[0]
}

// exist insists on how many purchases the upstream has.
func (w *world) exist(want int) {
	w.Helper()
	if all := w.env.Movements.All(); len(all) != want {
		w.Errorf("the upstream has %+v, want %d", all, want)
	}
}

// A minute must pass before an order may be asked for; until then nobody knows.
func TestFlowOfADelayedOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("xld10", "+62 878 0000 1233")
	if result := w.ordered(call, sdk.Pending); result.Amount != 10850 {
		t.Errorf("got %+v", result)
	}
	w.found(call, sdk.StatusUnknown)
	w.clock.Advance(2 * time.Second)
	heard := w.heard(sdk.StatusDone)
	w.clock.Advance(time.Minute)
	if found := w.found(call, sdk.StatusDone); found.EventID != heard.EventID || found.Amount != 10850 || string(found.Data) != string(heard.Data) {
		t.Errorf("found %+v, heard %+v", found, heard)
	}
	w.exist(1)
}

func TestFlowOfAFailure(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("xld10", "087800001234")
	w.ordered(call, sdk.Pending)
	w.clock.Advance(time.Minute)
	heard := w.heard(sdk.StatusFailed)
	if found := w.found(call, sdk.StatusFailed); found.EventID != heard.EventID {
		t.Errorf("found %+v, heard %+v", found, heard)
	}
}

// A success that is taken back is a second fact.
func TestFlowOfARefund(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("xld10", "087800001244")
	w.ordered(call, sdk.Done)
	w.clock.Advance(time.Minute)
	heard := w.heard(sdk.StatusFailed)
	if found := w.found(call, sdk.StatusFailed); found.EventID != heard.EventID || found.Amount != 10850 {
		t.Errorf("found %+v, heard %+v", found, heard)
	}
	w.exist(1)
}

// Webhooks that lie: a wrong price is told as it is, which the gateway sees;
// what is not the upstream's, or no JSON, says nothing.
func TestFlowOfWrongWebhooks(t *testing.T) {
	t.Parallel()
	for target, check := range map[string]func(*world, sdk.Acknowledgement){
		"087800001245": func(w *world, ack sdk.Acknowledgement) {
			if len(ack.Updates) != 1 || ack.Updates[0].Amount != 108500 {
				w.Errorf("a wrong price: %+v", ack)
			}
		},
		"087800001246": func(w *world, ack sdk.Acknowledgement) {
			if len(ack.Updates) != 0 || ack.Status != http.StatusBadRequest {
				w.Errorf("garbage: %+v", ack)
			}
		},
		"087800001249": func(w *world, ack sdk.Acknowledgement) {
			if len(ack.Updates) != 0 || ack.Status != http.StatusUnauthorized {
				w.Errorf("a forgery: %+v", ack)
			}
		},
	} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			call := w.quoted("xld10", target)
			w.ordered(call, sdk.Pending)
			w.clock.Advance(time.Minute)
			check(w, w.next())
			if found := w.found(call, sdk.StatusDone); found.Amount != 10850 {
				t.Errorf("found %+v", found)
			}
		})
	}
}

func TestFlowOfBills(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(o *sandbox.Options) { o.PriceAsText = true })
	call := w.quoted("pln", "630000000001")
	w.found(call, sdk.StatusNotFound)
	w.ordered(call, sdk.Pending)
	w.clock.Advance(time.Minute)
	heard := w.heard(sdk.StatusDone)
	if found := w.found(call, sdk.StatusDone); found.EventID != heard.EventID || found.Amount != call.Cost {
		t.Errorf("found %+v, heard %+v", found, heard)
	}
	w.exist(1)
}

// A bill that is ordered again under its own name, by a gateway that has forgotten the
// first, is found and not paid again, also the day after.
func TestFlowOfABillThatWasPaidBefore(t *testing.T) {
	t.Parallel()
	for number, want := range map[string]sdk.Outcome{"530000000001": sdk.Done, "630000000001": sdk.Pending} {
		w := newWorld(t)
		first := w.quoted("pln", number)
		w.ordered(first, want)
		for _, later := range []time.Duration{59 * time.Second, 24 * time.Hour} {
			w.clock.Advance(time.Second + later)
			again := w.quoted("pln", number)
			if again.Cost != first.Cost {
				w.Errorf("it cost %v, and is told to cost %v", first.Cost, again.Cost)
			}
			w.clock.Advance(time.Minute)
			w.ordered(again, sdk.Done)
		}
		w.exist(1)
	}
}

// A bill that was asked for yesterday is not sent, and not there.
func TestFlowOverMidnight(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("pln", "530000000001")
	w.clock.Advance(time.Hour)
	w.ordered(call, sdk.NotSent)
	w.found(call, sdk.StatusNotFound)
	w.exist(0)
}

// The upstream takes an old ref_id for a new purchase. It is never asked.
func TestFlowAfter90Days(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("xld10", "087800001230")
	w.ordered(call, sdk.Done)
	w.clock.Advance(85 * 24 * time.Hour)
	w.found(call, sdk.StatusDone)
	w.clock.Advance(6 * 24 * time.Hour)
	w.found(call, sdk.StatusUnknown)
	w.exist(1)
}

// The price rose between list and order: max_price keeps it from being bought.
func TestFlowOfAPriceThatRose(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	call := w.quoted("xld10", "087800001230")
	call.Cost--
	if result := w.ordered(call, sdk.Refused); result.Refusal.Code != sdk.RefuseProduct {
		t.Errorf("got %+v", result)
	}
	w.exist(0)
}
