package sandbox_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/plugins/midtrans/sandbox"
	kit "github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

const (
	serverKey = "SB-Mid-server-example"
	aLink     = `{"transaction_details":{"order_id":"O-1","gross_amount":25000},"callbacks":{"finish":"https://shop.test/ok"}}`
	aCharge   = `{"transaction_details":{"order_id":"O-1","gross_amount":25000},"payment_type":"qris"}`
)

// shop is a simulator with an order in it, and the shop's own receiver of notifications.
type shop struct {
	*testing.T

	clock *kit.ManualClock
	env   *kit.Env
	url   string
	page  string // of the order
	told  chan map[string]any
}

// each runs a check against a link and against a QRIS charge, each at a simulator of its own.
func each(t *testing.T, check func(shop)) {
	t.Helper()
	for name, order := range map[string][2]string{"link": {"/snap/v1/transactions", aLink}, "charge": {"/v2/charge", aCharge}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(open(t, order[0], order[1]))
		})
	}
}

func open(t *testing.T, path, order string) shop {
	t.Helper()
	s := shop{T: t, clock: kit.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), told: make(chan map[string]any, 10)}
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var told map[string]any
		if err := json.NewDecoder(r.Body).Decode(&told); err != nil {
			t.Error(err)
		}
		s.told <- told
	}))
	t.Cleanup(receiver.Close)
	var err error
	if s.env, err = kit.Open(kit.Config{Provider: "midtrans", StateDir: t.TempDir(), Token: "open", Clock: s.clock}); err != nil {
		t.Fatal(err)
	}
	up, err := sandbox.New(s.env)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s.env.Handler(up))
	t.Cleanup(func() {
		server.Close()
		if err := s.env.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := s.env.Accounts.Register(kit.Account{ID: kit.AccountOf(serverKey), Name: "Toko Contoh", CallbackURL: receiver.URL}); err != nil {
		t.Fatal(err)
	}
	s.url = server.URL
	if status, body := s.ask(http.MethodPost, path, "application/json", order); status != http.StatusCreated {
		t.Fatalf("created: %d %s", status, body)
	}
	s.page = s.url + s.env.Movements.All()[0].Page
	return s
}

// ask sends a request as the shop and returns the answer.
func (s shop) ask(method, path, kind, body string) (int, string) {
	s.Helper()
	request, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	request.SetBasicAuth(serverKey, "")
	request.Header.Set("Content-Type", kind)
	// A transport of its own: on a kept connection one would ask again by itself what was cut off.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, string(text) + answer.Header.Get("Location")
}

// press presses a button of the page, of the payer's where the order is "".
func (s shop) press(order string) string {
	s.Helper()
	status, body := s.ask(http.MethodPost, strings.TrimPrefix(s.page, s.url), "application/x-www-form-urlencoded", url.Values{"order": {order}}.Encode())
	if status != http.StatusSeeOther {
		s.Fatalf("%q: %d %s", order, status, body)
	}
	return body
}

// is wants a state on the page and of the upstream, and the last event about it.
func (s shop) is(state string) {
	s.Helper()
	status, page := s.ask(http.MethodGet, strings.TrimPrefix(s.page, s.url), "", "")
	if status != http.StatusOK || !strings.Contains(page, "<strong>"+state+"</strong>") {
		s.Errorf("the page: %d, want it to say %s\n%s", status, state, page)
	}
	if _, body := s.ask(http.MethodGet, "/v2/O-1/status", "", ""); !strings.Contains(body, `"transaction_status":"`+state+`"`) {
		s.Errorf("the upstream says %s, want %s", body, state)
	}
}

// notified wants a number of notifications, and returns those that have come.
func (s shop) notified(want int) []map[string]any {
	s.Helper()
	s.env.Webhooks.Tried(s.Context())
	var told []map[string]any
	for len(s.told) > 0 {
		told = append(told, <-s.told)
	}
	if len(told) != want {
		s.Fatalf("%d notifications have come, want %d: %v", len(told), want, told)
	}
	return told
}

func TestRoomPays(t *testing.T) {
	t.Parallel()
	each(t, func(s shop) {
		s.press("pay")
		s.is("settlement")
		if told := s.notified(1); told[0]["transaction_status"] != "settlement" || told[0]["order_id"] != "O-1" {
			t.Errorf("told %v", told)
		}
		s.press("pay") // nothing more is done
		s.press("fail")
		s.is("settlement")
		s.notified(0)
		s.press("notify")
		s.notified(1)
		var events []string
		for _, e := range s.env.Activity.About(s.page[strings.LastIndex(s.page, "/")+1:]) {
			events = append(events, e.Kind+" "+e.Name)
		}
		made := slices.IndexFunc(events, func(e string) bool { return e == "call charge" || e == "call snap.transactions" })
		if made != len(events)-1 || !slices.Contains(events, "call status") || !slices.Contains(events, "notification settlement") {
			t.Errorf("the page shows %q", events)
		}
	})
}

func TestRoomNotifiesLateOrNever(t *testing.T) {
	t.Parallel()
	each(t, func(s shop) {
		s.press("pay-late")
		s.is("settlement")
		s.clock.Advance(kit.LateGap - time.Millisecond)
		s.notified(0)
		s.clock.Advance(time.Millisecond)
		s.notified(1)
	})
	each(t, func(s shop) {
		s.press("pay-lost")
		s.is("settlement")
		s.clock.Advance(time.Hour)
		s.notified(0)
	})
}

func TestRoomFails(t *testing.T) {
	t.Parallel()
	each(t, func(s shop) {
		s.press("fail")
		s.is("expire")
		if told := s.notified(1); told[0]["transaction_status"] != "expire" {
			t.Errorf("told %v", told)
		}
		s.press("pay")
		s.is("expire")
	})
}

func TestRoomDropsALookup(t *testing.T) {
	t.Parallel()
	each(t, func(s shop) {
		s.press("pay-lost")
		s.press("drop")
		if status, body := s.ask(http.MethodGet, "/v2/O-1/status", "", ""); status != 0 {
			t.Errorf("answered %d %s", status, body)
		}
		s.is("settlement")
		if _, page := s.ask(http.MethodGet, strings.TrimPrefix(s.page, s.url), "", ""); !strings.Contains(page, "no answer: the connection was cut") {
			t.Errorf("the page does not show it:\n%s", page)
		}
	})
}

// TestPayersGoOn: who pays as a payer goes on to where the merchant wants them, and stays where there is nowhere.
func TestPayersGoOn(t *testing.T) {
	t.Parallel()
	if to := open(t, "/snap/v1/transactions", aLink).press(""); to != "https://shop.test/ok" {
		t.Errorf("a link leads to %q", to)
	}
	if s := open(t, "/v2/charge", aCharge); s.press("") != strings.TrimPrefix(s.page, s.url) {
		t.Error("a charge leads elsewhere")
	}
}

// TestRoomInABrowser: the page keeps itself fresh under its own policy, and axe has
// nothing to say about it.
func TestRoomInABrowser(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	s := open(t, "/snap/v1/transactions", aLink)
	if out := b.Run(t, "../../../sdk/sandbox/testdata/room.mjs", nil, "midtrans-room="+s.page); out != "" {
		t.Error(out)
	}
}
