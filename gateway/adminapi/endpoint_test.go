package adminapi_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/tenants"
)

type part struct {
	Shop tenants.MerchantID `path:"shop" json:"-"`
	Note string             `json:"note,omitempty"`
}

type question struct {
	part

	Name  string    `path:"name" json:"-"`
	Since time.Time `query:"since" json:"-"`
	Limit int       `query:"limit" json:"-"`
	Full  bool      `query:"full" json:"-"`
}

// TestInputTravelsByItsTags sends inputs through an endpoint's client and reads them as the console does.
func TestInputTravelsByItsTags(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for route, in := range map[string]question{
		"POST /shops/{shop}/names/{name}": {part: part{Shop: "a/b", Note: "why"}, Name: "ä ?"},
		"GET /shops/{shop}/names/{name}":  {part: part{Shop: "mer_1"}, Name: "x", Since: at, Limit: 7, Full: true},
	} {
		endpoint := adminapi.Endpoint[question, question]{Act: adminapi.Act{Route: route}}
		mux := http.NewServeMux()
		mux.HandleFunc(route, func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if got, err := endpoint.Decode(r, body); err != nil || got != in {
				t.Errorf("%s: read %+v, %v; want %+v", route, got, err, in)
			}
			_, _ = io.WriteString(w, `{"data":{"note":"answered"}}`)
		})
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		if out, err := endpoint.Call(t.Context(), adminapi.NewClient(server.URL, "token"), in); err != nil || out.Note != "answered" {
			t.Errorf("%s: answered %+v, %v", route, out, err)
		}
	}
}

func TestWrongInputIsRefusedByItsName(t *testing.T) {
	t.Parallel()
	endpoint := adminapi.Endpoint[question, question]{}
	for query, body := range map[string]string{"since=yesterday": "", "limit=0": "", "limit=1001": "", "limit=x": "", "shop=1": `{"Shop":"x"}`, "name=1": `{"name":"x"}`} {
		_, err := endpoint.Decode(httptest.NewRequest(http.MethodPost, "/?"+query, nil), []byte(body))
		if err == nil || fault.From(err).Code != fault.InvalidRequest {
			t.Errorf("%s %s: %v", query, body, err)
		}
	}
}
