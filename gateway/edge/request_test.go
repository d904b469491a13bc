package edge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestWhatIsWrongWithAKeyIsAuthFailedInOneText(t *testing.T) {
	t.Parallel()
	h := build(t)
	body := func(credentials string) string { return `{` + credentials + `"amount":1}` }
	bearer := func(token string) []header { return []header{{"Authorization", "Bearer " + token}} }
	tests := []struct {
		name, body string
		headers    []header
	}{
		{"missing", body(``), nil},
		{"null", body(`"secret_key":null,`), nil},
		{"empty", body(`"secret_key":"",`), nil},
		{"a number", body(`"secret_key":7,`), nil},
		{"an object", body(`"secret_key":{"a":1},`), nil},
		{"a huge number", body(`"secret_key":1e999999999,`), nil},
		{"with a NUL", body(`"secret_key":"\u0000",`), nil},
		{"unknown", body(`"secret_key":"sk_live_x",`), nil},
		{"bearer unknown", body(``), bearer("sk_live_x")},
		{"bearer empty", body(``), bearer("")},
		{"both and different", body(`"secret_key":"` + h.key + `",`), bearer(h.key + "x")},
		{"a number and a right bearer", body(`"secret_key":7,`), bearer(h.key)},
		{"two bearers", body(``), append(bearer(h.key), bearer("x")...)},
		{"another scheme", body(``), []header{{"Authorization", "Basic " + h.key}}},
		{"another merchant", body(`"secret_key":"` + h.key + `","merchant_id":"mer_other",`), nil},
		{"a merchant of a wrong type", body(`"secret_key":"` + h.key + `","merchant_id":7,`), nil},
		{"empty body, wrong bearer", ``, bearer("x")},
	}
	texts := map[string]bool{}
	for _, test := range tests {
		got := h.create(t, test.body, test.headers...)
		if got.envelope.Code != fault.AuthFailed {
			t.Errorf("%s: got %d %s", test.name, got.StatusCode, got.text)
		}
		if got.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no WWW-Authenticate", test.name)
		}
		texts[got.envelope.Message] = true
	}
	if len(texts) != 1 {
		t.Errorf("there is more than one text: %v", texts)
	}
}

func TestABearerTakesThePlaceOfTheField(t *testing.T) {
	t.Parallel()
	h := build(t)
	without := strings.Replace(h.right(""), `"secret_key":"`+h.key+`",`, "", 1)
	for _, value := range []string{"Bearer " + h.key, "bearer   " + h.key} {
		if got := h.create(t, without, header{"Authorization", value}); got.StatusCode != http.StatusOK {
			t.Errorf("got %d %s", got.StatusCode, got.text)
		}
	}
	if got := h.create(t, h.right(""), header{"Authorization", "Bearer " + h.key}); got.StatusCode != http.StatusOK {
		t.Errorf("both and equal: %s", got.text)
	}
	if got := h.create(t, h.right(""), header{"Authorization", "Basic abc"}); got.StatusCode != http.StatusOK {
		t.Errorf("a scheme that is not ours: %s", got.text)
	}
	h.create(t, "", header{"Authorization", "Bearer " + h.key}).wantFault(t, fault.InvalidRequest)
}

func TestOnlyFailuresOfOneAddressAreSlowed(t *testing.T) {
	t.Parallel()
	h := build(t)
	for range 20 {
		h.create(t, `{"secret_key":"x"}`).wantFault(t, fault.AuthFailed)
	}
	got := h.create(t, `{"secret_key":"x"}`)
	got.wantFault(t, fault.RateLimited)
	if got.Header.Get("RateLimit") != `"authentication";r=0;t=60` || got.Header.Get("RateLimit-Policy") != `"authentication";q=20;w=60` {
		t.Errorf("the fields are %v", got.Header)
	}
	if got.Header.Get("Retry-After") != "60" || got.envelope.RetryAt == "" {
		t.Errorf("it does not say how long: %v %s", got.Header, got.text)
	}
	if got := h.create(t, h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("a valid key is slowed: %s", got.text)
	}
	other := httptest.NewRequest(http.MethodPost, "/payments/create", strings.NewReader(`{"secret_key":"x"}`))
	other.RemoteAddr = "198.51.100.7:4711"
	h.serve(t, other).wantFault(t, fault.AuthFailed)
}

// TestAllFailuresTakeTheSameTime: neither a look-up nor none is told by the time, also
// where the address has failed too often.
func TestAllFailuresTakeTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		for _, lookUp := range []time.Duration{0, time.Microsecond, 20 * time.Millisecond} {
			h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) {
				time.Sleep(lookUp)
				return id, err
			}
			for n := range 22 {
				begun, code := time.Now(), fault.AuthFailed
				if lookUp == 0 && n >= 20 || lookUp > 0 {
					code = fault.RateLimited
				}
				h.create(t, `{"secret_key":"x"}`).wantFault(t, code)
				if took := time.Since(begun); took != 25*time.Millisecond {
					t.Errorf("failure %d, with a look-up of %v, took %v", n+1, lookUp, took)
				}
			}
		}
	})
}

func TestAnAddressThatTheKeyDoesNotAllow(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.authenticated = func(id tenants.Identity, _ error) (tenants.Identity, error) { return id, tenants.ErrAddress }
	for range 25 {
		h.create(t, h.right("")).wantFault(t, fault.ScopeMissing)
	}
}

func TestKeysThatCanNotBeCheckedAreNoFailures(t *testing.T) {
	t.Parallel()
	h := build(t)
	h.authenticated = func(tenants.Identity, error) (tenants.Identity, error) {
		return tenants.Identity{}, errors.New("the database is away")
	}
	for range 25 {
		h.create(t, h.right("")).wantFault(t, fault.Internal)
	}
}

// TestAStaleReplicaOnlyReads: a replica that could not know of a revoked key, or of a policy
// version in force, moves no money.
func TestAStaleReplicaOnlyReads(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]func(h *house){
		"keys": func(h *house) { h.stale = true }, "policy": func(h *house) { h.policyStale = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := build(t)
			age(h)
			got := h.create(t, h.right(""))
			got.wantFault(t, fault.Internal)
			if got.envelope.Sent != fault.SentNo || got.envelope.Retry != fault.RetryLater {
				t.Errorf("got %s", got.text)
			}
			follow := `{"secret_key":"` + h.key + `","external_id":"INV-1"}`
			h.send(t, http.MethodPost, "/payments/cancel", follow).wantFault(t, fault.Internal)
			if got := h.send(t, http.MethodPost, "/payments/status", follow); got.StatusCode != http.StatusOK {
				t.Errorf("a status is refused: %s", got.text)
			}
		})
	}
}

// witness is an authenticator that knows nobody and notes where they come from.
type witness struct{ seen []string }

func (w *witness) Authenticate(_ context.Context, _ time.Time, _ string, addr netip.Addr) (tenants.Identity, error) {
	w.seen = append(w.seen, addr.String())
	return tenants.Identity{}, tenants.ErrAuthFailed
}

func (*witness) Remembers(string) bool { return true }

func (*witness) RemembersRoute(tenants.Provider, tenants.NotifyToken) bool { return true }

func (*witness) Fresh(time.Time) bool { return true }

func TestClientAddress(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48")}
	tests := []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"a stranger's header proves nothing", "192.0.2.1:1", []string{"203.0.113.9"}, "192.0.2.1"},
		{"a proxy's header", "10.0.0.1:1", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the last that is no proxy", "10.0.0.1:1", []string{"1.2.3.4, 203.0.113.9, 10.0.0.2"}, "203.0.113.9"},
		{"several headers", "10.0.0.1:1", []string{"1.2.3.4", "203.0.113.9:5555"}, "203.0.113.9"},
		{"nothing but proxies", "10.0.0.1:1", []string{"10.0.0.3"}, "10.0.0.3"},
		{"nonsense", "10.0.0.1:1", []string{"203.0.113.9, unknown"}, "10.0.0.1"},
		{"no header", "10.0.0.1:1", nil, "10.0.0.1"},
		{"mapped", "[::ffff:10.0.0.1]:1", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"IPv6", "[2001:db8:1::1]:1", []string{"2001:db8:2::7"}, "2001:db8:2::7"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h, w := build(t), &witness{}
			dependencies := h.dependencies()
			dependencies.Authenticator = w
			var err error
			if h.Edge, err = edge.New(edge.Config{TrustedProxies: trusted}, dependencies, snapshot(t)); err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, "/payments/create", strings.NewReader(`{}`))
			r.RemoteAddr = test.peer
			r.Header["X-Forwarded-For"] = test.forwarded
			h.serve(t, r)
			if len(w.seen) != 1 || w.seen[0] != test.want {
				t.Errorf("got %v, want %s", w.seen, test.want)
			}
		})
	}
}
