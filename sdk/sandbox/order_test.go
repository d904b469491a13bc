package sandbox_test

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/sandbox"
)

// orderly is a shop that takes orders.
type orderly struct {
	sandbox.Upstream
}

type parcel struct {
	Weight int `json:"weight"`
}

// Orders implements sandbox.Orderer.
func (orderly) Orders() []sandbox.Order {
	return []sandbox.Order{sandbox.NewOrder("parcel", "sends one", func(p parcel) (any, error) {
		switch {
		case p.Weight == 0:
			return nil, sandbox.ErrUnknown
		case p.Weight < 0:
			return nil, errors.New("too light")
		}
		p.Weight++
		return p, nil
	})}
}

func TestOrders(t *testing.T) {
	t.Parallel()
	w := openShop(t, sandbox.NewManualClock(start))
	server := httptest.NewServer(w.env.Handler(orderly{&shop{env: w.env}}))
	t.Cleanup(server.Close)
	w.url = server.URL
	for _, c := range []struct {
		method, path, token, body string
		status                    int
		want                      string
	}{
		{"POST", "parcel", "open", `{"weight":1}`, 200, `{"weight":2}`},
		{"POST", "parcel", "open", `{"weight":0}`, 404, `nothing of this upstream`},
		{"POST", "parcel", "open", `{"weight":-1}`, 400, `too light`},
		{"POST", "parcel", "open", `{"colour":1}`, 400, `colour`},
		{"POST", "parcel", "open", `{"weight":1,"weight":2}`, 400, `weight`},
		{"POST", "parcel", "open", `{"Weight":1}`, 400, `Weight`},
		{"POST", "parcel", "open", `{"weight":1} {}`, 400, `expected JSON`},
		{"POST", "parcel", "open", ``, 400, `expected JSON`},
		{"POST", "parcel", "", `{"weight":1}`, 401, `token`},
		{"GET", "parcel", "open", ``, 405, ``},
		{"GET", "describe", "open", ``, 200, `"orders":[{"name":"parcel","effect":"sends one"}]`},
	} {
		status, body, err := w.call(c.method, "/_sandbox/"+c.path, c.token, c.body)
		if err != nil || status != c.status || !strings.Contains(body, c.want) {
			t.Errorf("%s %s: %d %s %v; want %d %s", c.path, c.body, status, body, err, c.status, c.want)
		}
	}
}
