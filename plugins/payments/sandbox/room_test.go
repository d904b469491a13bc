package sandbox_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/plugins/payments/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// payment is an invoice or a QR code in the control room.
type payment struct {
	w                     *world
	id, reference, lookup string
	ask                   caller
}

// each runs a check against an invoice and against a QR code, each in its own world.
func each(t *testing.T, check func(*testing.T, payment)) {
	t.Helper()
	for name, create := range map[string]func(*world) payment{
		"invoice": func(w *world) payment {
			id := w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"I-1","amount":25000}`).text("id")
			return payment{w, id, "I-1", "/v2/invoices/" + id, w.v1()}
		},
		"qr": func(w *world) payment {
			id := w.v2().do(201, "POST", "/qr_codes", plainQR).text("id")
			return payment{w, id, "QR-1", "/qr_codes/" + id, w.v2()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, create(open(t, sandbox.DefaultOptions())))
		})
	}
}

// press presses a button of the control room.
func (p payment) press(order string, want int) {
	p.w.t.Helper()
	request := caller{p.w, "", ""}.request(http.MethodPost, "/web/"+p.id, url.Values{"order": {order}}.Encode())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if response, text := p.w.send(request); response.StatusCode != want {
		p.w.t.Fatalf("%s: %d %s, want %d", order, response.StatusCode, text, want)
	}
}

// events are the last events, newest first, as "kind name status".
func (p payment) events() []string {
	p.w.t.Helper()
	var lines []string
	for _, e := range p.list() {
		lines = append(lines, fmt.Sprint(e.Kind, " ", e.Name, " ", e.Status))
	}
	return lines
}

func (p payment) list() []kit.Event {
	p.w.t.Helper()
	_, text := p.w.send(caller{p.w, "", ""}.request(http.MethodGet, "/web/"+p.id+"/events.json", ""))
	var events []kit.Event
	if err := json.Unmarshal([]byte(text), &events); err != nil {
		p.w.t.Fatalf("%v: %s", err, text)
	}
	return events
}

func (p payment) page() string {
	p.w.t.Helper()
	_, page := p.w.send(caller{p.w, "", ""}.request(http.MethodGet, "/web/"+p.id, ""))
	return page
}

func (p payment) state(want string) {
	p.w.t.Helper()
	if got := p.w.states(p.reference); !slices.Equal(got, []string{want}) {
		p.w.t.Errorf("the witness says %v, want %s", got, want)
	}
}

// notified counts the notifications that were tried.
func (p payment) notified() int {
	p.w.t.Helper()
	count := 0
	for _, e := range p.list() {
		if e.Kind == kit.EventNotification {
			count++
		}
	}
	return count
}

func TestRoomPays(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		p.press("pay", 303)
		p.state("PAID")
		p.w.next()
		p.ask.do(200, "GET", p.lookup, "")
		got := p.events()
		if len(got) != 3 || !strings.HasSuffix(got[0], ".get 200") || got[1] != "notification PAID 200" || !strings.Contains(got[2], ".create 20") {
			t.Errorf("events %q", got)
		}
		page := p.page()
		for _, want := range []string{"<strong>PAID</strong>", "notification <code>PAID</code>", "the gateway answered 200 OK", `value="notify"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q:\n%s", want, page)
			}
		}
		p.press("pay", 303) // nothing more is done
		if p.notified() != 1 {
			t.Errorf("paid twice: %q", p.events())
		}
	})
}

func TestRoomNotifiesLate(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, p payment) {
		p.press("pay-late", 303)
		p.state("PAID")
		p.w.clock.Advance(4*time.Second - time.Millisecond)
		p.w.silent()
		p.w.clock.Advance(time.Millisecond)
		p.w.next()
	})
}

func TestRoomDropsTheNotification(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, p payment) {
		p.press("pay-lost", 303)
		p.state("PAID")
		p.w.clock.Advance(time.Hour)
		p.w.silent()
	})
}

func TestRoomFails(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		p.press("fail", 303)
		p.state("EXPIRED")
		if state := p.ask.do(200, "GET", p.lookup, "").text("status"); state != "EXPIRED" && state != "INACTIVE" {
			t.Errorf("a look-up says %s", state)
		}
		if strings.Contains(p.page(), ">Pay Rp") {
			t.Error("the payer can still pay")
		}
		if p.ask.version != "" {
			p.w.silent() // the upstream tells nobody of a code's end
		} else if e := p.w.next(); e.body.text("status") != "EXPIRED" {
			t.Errorf("event %+v", e)
		}
	})
}

func TestRoomNotifiesAgain(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		p.press("notify", 303) // of nothing
		if p.notified() != 0 || strings.Contains(p.page(), `value="notify"`) {
			t.Errorf("before it ended: %q", p.events())
		}
		p.press("pay-lost", 303)
		p.press("notify", 303)
		p.press("notify", 303)
		one, two := p.w.next(), p.w.next()
		if fmt.Sprint(one.body) != fmt.Sprint(two.body) || one.id == two.id || p.notified() != 2 {
			t.Errorf("%+v and %+v", one, two)
		}
	})
}

func TestRoomDelaysALookup(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		p.press("delay", 303)
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if response, _ := p.w.send(p.ask.request("GET", p.lookup, "")); response.StatusCode != http.StatusOK {
				t.Errorf("answered %d", response.StatusCode)
			}
		}()
		for waiting := true; waiting; {
			select {
			case <-answered:
				waiting = false
			default:
				p.w.clock.Advance(time.Second)
			}
		}
		// The clock may have run on until the payment ended and was notified, too.
		waited := func(e kit.Event) bool {
			return strings.HasSuffix(e.Name, ".get") && e.Status == 200 && e.Milliseconds >= 3000
		}
		if !slices.ContainsFunc(p.list(), waited) {
			t.Errorf("events %+v", p.list())
		}
	})
}

func TestRoomDropsALookup(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		p.press("drop", 303)
		// On a connection that was kept, a transport would try again by itself.
		alone := &http.Transport{}
		if response, err := alone.RoundTrip(p.ask.request("GET", p.lookup, "")); err == nil {
			_ = response.Body.Close()
			t.Errorf("answered %d", response.StatusCode)
		}
		p.ask.do(200, "GET", p.lookup, "")
		got := p.list()
		if got[0].Status != 200 || got[1].Status != 0 || got[1].Reason != "the connection was cut" {
			t.Errorf("events %+v", got)
		}
		if page := p.page(); !strings.Contains(page, "no answer: the connection was cut") {
			t.Errorf("the page does not show it:\n%s", page)
		}
	})
}

// TestRoomShowsWhatIsRefused: a notification that the gateway refuses is shown with
// its status, and its next try too; another payment's page shows nothing of it.
func TestRoomShowsWhatIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		answers := make(chan int, 2)
		answers <- http.StatusServiceUnavailable
		answers <- http.StatusOK
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(<-answers) }))
		t.Cleanup(gateway.Close)
		account := kit.Account{ID: kit.AccountOf(testKey), Name: "Toko Contoh", CallbackURL: gateway.URL}
		if err := p.w.env.Accounts.Register(account); err != nil {
			t.Fatal(err)
		}
		other := payment{w: p.w, id: p.w.v1().do(200, "POST", "/v2/invoices", `{"external_id":"other","amount":9000}`).text("id")}
		p.press("pay", 303)
		if got := p.events()[0]; got != "notification PAID 503" {
			t.Fatalf("the last event is %q", got)
		}
		p.w.clock.Advance(time.Minute)
		p.w.env.Webhooks.Tried(t.Context())
		if e := p.list()[0]; e.Status != 200 || e.Try != 2 {
			t.Errorf("the second try: %+v", e)
		}
		if got := other.events(); !slices.Equal(got, []string{"call invoices.create 200"}) {
			t.Errorf("the other payment's events: %q", got)
		}
	})
}

// TestMovementsLeadToTheRoom: the witness names the page of each payment.
func TestMovementsLeadToTheRoom(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p payment) {
		request := caller{p.w, "", ""}.request(http.MethodGet, "/_sandbox/movements?reference="+p.reference, "")
		request.Header.Set("Authorization", "Bearer open")
		if _, text := p.w.send(request); !strings.Contains(text, `"page":"`+p.w.api.URL+"/web/"+p.id+`"`) {
			t.Errorf("movements %s", text)
		}
	})
}

func TestRoomRefusesUnknownOrders(t *testing.T) {
	t.Parallel()
	each(t, func(_ *testing.T, p payment) {
		p.press("explode", 400)
		p.state("PENDING")
		payment{w: p.w, id: "unknown"}.press("pay", 404)
	})
}

// TestRoomInABrowser: the page keeps itself fresh under its own policy, and axe has
// nothing to say about it.
func TestRoomInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	w := open(t, sandbox.DefaultOptions())
	created := w.v1().do(200, "POST", "/v2/invoices",
		`{"external_id":"order-1","amount":25000,"description":"Two coffees","success_redirect_url":"https://shop.test/ok"}`)
	if out := b.Run(t, "../../../sdk/sandbox/testdata/room.mjs", nil, "room="+created.text("invoice_url")); out != "" {
		t.Error(out)
	}
}
