package edge_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/catalog"
	"github.com/seed-f006e74d/gerbang/gateway/edge"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

const listPath = "/shop/list"

// shop offers a query that may be asked by GET, and one that may not.
func shop(t testing.TB, kind manifest.Kind) *catalog.Snapshot {
	t.Helper()
	list := manifest.Operation{
		Path: listPath, Kind: kind, Summary: "List", Get: true,
		Request: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` +
			`"type":{"type":"string","maxLength":20},"page":{"type":"integer","minimum":1},"code":{"type":["string","integer"]}}}`),
		Result: json.RawMessage(`{"type":"array"}`), Response: json.RawMessage(`{"type":"array"}`),
	}
	posted := list
	posted.Path, posted.Get = "/shop/find", false
	m := &manifest.Manifest{Name: "shop", Operations: []manifest.Operation{list, posted}}
	s, err := catalog.Build([]*manifest.Manifest{m})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// buildShop makes a house that offers the shop.
func buildShop(t testing.TB) *house {
	t.Helper()
	h := build(t)
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return lifecycle.Answer{Data: []any{}}, nil }
	if err := h.Use(shop(t, manifest.Query)); err != nil {
		t.Fatal(err)
	}
	return h
}

// with is the list's path with a query: the key, then pairs.
func (h *house) with(pairs ...string) string {
	query := url.Values{"secret_key": {h.key}}
	for i := 0; i < len(pairs); i += 2 {
		query.Add(pairs[i], pairs[i+1])
	}
	return listPath + "?" + query.Encode()
}

func TestQueriesAreAskedInTheURL(t *testing.T) {
	t.Parallel()
	bearer := func(h *house) []header { return []header{{"Authorization", "Bearer " + h.key}} }
	none := func(*house) []header { return nil }
	for name, c := range map[string]struct {
		method  string
		path    func(*house) string
		body    func(*house) string
		headers func(*house) []header
		want    catalog.Document
	}{
		"GET": {http.MethodGet, func(h *house) string { return h.with("type", "Pasca", "page", "12", "code", "7") }, empty, none,
			catalog.Document{"type": "Pasca", "page": json.Number("12"), "code": "7"}},
		"GET with a header":   {http.MethodGet, func(*house) string { return listPath + "?type=Pasca" }, empty, bearer, catalog.Document{"type": "Pasca"}},
		"GET of everything":   {http.MethodGet, func(*house) string { return listPath }, empty, bearer, catalog.Document{}},
		"POST without a body": {http.MethodPost, func(h *house) string { return h.with("type", "Prepaid", "merchant_id", "mer_test") }, empty, none, catalog.Document{"type": "Prepaid"}},
		"POST with both":      {http.MethodPost, func(h *house) string { return h.with("type", "Pasca") }, func(*house) string { return `{"page":2}` }, none, catalog.Document{"type": "Pasca", "page": json.Number("2")}},
		"POST with a body":    {http.MethodPost, func(*house) string { return listPath }, func(h *house) string { return `{"secret_key":"` + h.key + `"}` }, none, catalog.Document{}},
		"the same twice": {http.MethodPost, func(h *house) string { return h.with("type", "Pasca", "page", "2", "merchant_id", "mer_test") }, func(h *house) string {
			return `{"secret_key":"` + h.key + `","type":"Pasca","page":2,"merchant_id":"mer_test"}`
		}, bearer, catalog.Document{"type": "Pasca", "page": json.Number("2")}},
		"what is empty":        {http.MethodGet, func(h *house) string { return h.with("type", "", "page", "", "merchant_id", "") }, empty, none, catalog.Document{}},
		"a space and a plus":   {http.MethodGet, func(h *house) string { return h.with("type", "a b+c&d=é") }, empty, none, catalog.Document{"type": "a b+c&d=é"}},
		"absent in the body":   {http.MethodPost, func(h *house) string { return h.with("type", "Pasca") }, func(*house) string { return `{"type":null,"secret_key":""}` }, none, catalog.Document{"type": "Pasca"}},
		"not where it is none": {http.MethodPost, func(*house) string { return "/shop/find?type=Pasca&secret_key=x&secret_key=y" }, func(*house) string { return `{"page":3}` }, bearer, catalog.Document{"page": json.Number("3")}},
	} {
		h := buildShop(t)
		got := h.send(t, c.method, c.path(h), c.body(h), c.headers(h)...)
		if got.StatusCode != http.StatusOK || len(h.requests) != 1 || !maps.Equal(h.requests[0].Body, c.want) {
			t.Errorf("%s: got %d %s, the engine %v", name, got.StatusCode, got.text, h.requests)
		}
		if got.Header.Get("Cache-Control") != "no-store" || got.Header.Get("Referrer-Policy") != "" {
			t.Errorf("%s: headers %v", name, got.Header)
		}
	}
}

func empty(*house) string { return "" }

func TestQueriesAreReadStrictly(t *testing.T) {
	t.Parallel()
	h := buildShop(t)
	key := "secret_key=" + h.key
	for name, c := range map[string]struct {
		method, query, body string
		code                fault.Code
		field, message      string
	}{
		"no key":               {http.MethodGet, "type=Pasca", "", fault.AuthFailed, "", ""},
		"a wrong key":          {http.MethodGet, "secret_key=x", "", fault.AuthFailed, "", ""},
		"nothing":              {http.MethodPost, "", "", fault.AuthFailed, "", ""},
		"two keys":             {http.MethodPost, key, `{"secret_key":"x"}`, fault.AuthFailed, "", ""},
		"two keys, one wrong":  {http.MethodPost, "secret_key=x", `{"secret_key":"` + h.key + `"}`, fault.AuthFailed, "", ""},
		"a key that is none":   {http.MethodPost, key, `{"secret_key":7}`, fault.AuthFailed, "", ""},
		"a key twice":          {http.MethodGet, key + "&" + key, "", fault.InvalidRequest, "secret_key", "twice"},
		"another's merchant":   {http.MethodGet, key + "&merchant_id=mer_other", "", fault.AuthFailed, "", ""},
		"two merchants":        {http.MethodPost, key + "&merchant_id=mer_test", `{"merchant_id":"mer_other"}`, fault.InvalidRequest, "merchant_id", "differs"},
		"a field twice":        {http.MethodGet, key + "&type=a&type=a", "", fault.InvalidRequest, "type", "twice"},
		"empty and not":        {http.MethodGet, key + "&type=&type=a", "", fault.InvalidRequest, "type", "twice"},
		"another in the body":  {http.MethodPost, key + "&type=a", `{"type":"b"}`, fault.InvalidRequest, "type", "differs"},
		"an object in it":      {http.MethodPost, key + "&type=a", `{"type":{"a":1}}`, fault.InvalidRequest, "type", "differs"},
		"another number":       {http.MethodPost, key + "&page=1", `{"page":2}`, fault.InvalidRequest, "page", "differs"},
		"an unknown field":     {http.MethodGet, key + "&brand=x", "", fault.InvalidRequest, "brand", "not a known field"},
		"a fraction":           {http.MethodGet, key + "&page=1.5", "", fault.InvalidRequest, "page", "whole number"},
		"an exponent":          {http.MethodGet, key + "&page=1e1", "", fault.InvalidRequest, "page", "whole number"},
		"a plus":               {http.MethodGet, key + "&page=%2B1", "", fault.InvalidRequest, "page", "whole number"},
		"a leading zero":       {http.MethodGet, key + "&page=01", "", fault.InvalidRequest, "page", "whole number"},
		"below the least":      {http.MethodGet, key + "&page=-1", "", fault.InvalidRequest, "page", "at least 1"},
		"too long":             {http.MethodGet, key + "&type=" + strings.Repeat("x", 21), "", fault.InvalidRequest, "type", "at most 20"},
		"a NUL character":      {http.MethodGet, key + "&type=a%00b", "", fault.InvalidRequest, "type", "NUL"},
		"not UTF-8":            {http.MethodGet, key + "&type=%ff", "", fault.InvalidRequest, "type", "UTF-8"},
		"a name not UTF-8":     {http.MethodGet, key + "&%ff=1", "", fault.InvalidRequest, "", "UTF-8"},
		"a broken escape":      {http.MethodGet, key + "&type=%zz", "", fault.InvalidRequest, "", "can't be read"},
		"a semicolon":          {http.MethodGet, key + ";type=a", "", fault.InvalidRequest, "", "can't be read"},
		"a body of a GET":      {http.MethodGet, key, `{"type":"a"}`, fault.InvalidRequest, "", "not in a body"},
		"a body that is wrong": {http.MethodPost, key, `type=a`, fault.InvalidRequest, "", "must be a JSON object"},
	} {
		got := h.send(t, c.method, listPath+"?"+c.query, c.body)
		if got.envelope.Code != c.code {
			t.Errorf("%s: got %s, want %s", name, got.text, c.code)
			continue
		}
		if got.wantFault(t, c.code); c.field != "" {
			got.wantField(t, c.field, c.message)
		} else if !strings.Contains(got.envelope.Message, c.message) {
			t.Errorf("%s: got %s, want %q", name, got.text, c.message)
		}
	}
	h.send(t, http.MethodPost, listPath+"?"+key, "", header{"Authorization", "Bearer x"}).wantFault(t, fault.AuthFailed)
	if len(h.requests) > 0 {
		t.Errorf("the engine was given %v", h.requests)
	}
}

func TestGETIsOnlyForQueriesThatSaySo(t *testing.T) {
	t.Parallel()
	h := buildShop(t)
	for path, allow := range map[string]string{listPath: "GET, POST", "/shop/find": "POST"} {
		for _, method := range []string{http.MethodHead, http.MethodPut, http.MethodOptions} {
			got := h.send(t, method, path, "")
			if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != allow {
				t.Errorf("%s %s: %d, Allow is %q, want %q", method, path, got.StatusCode, got.Header.Get("Allow"), allow)
			}
		}
	}
	h.send(t, http.MethodGet, "/shop/find", "").wantFault(t, fault.MethodNotAllowed)
	other := &manifest.Manifest{Name: "other", Lookup: manifest.LookupRead}
	op, _ := snapshot(t).ByPath("/payments/create")
	other.Operations = []manifest.Operation{op.Operation}
	other.Operations[0].Get = true
	s, err := catalog.Build([]*manifest.Manifest{other})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Use(s); err == nil || !strings.Contains(err.Error(), "/payments/create") {
		t.Errorf("a payment by GET: %v", err)
	}
}

// locked is a log that may be written and read at once.
type locked struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// TestAQueryIsToldToNobody sends a key and a value in the query in every way
// that ends differently, over the wire, and looks for them in the logs, in
// metrics, and in whatever comes back.
func TestAQueryIsToldToNobody(t *testing.T) {
	t.Parallel()
	const value = "needle4711"
	h, log := buildShop(t), &locked{}
	dependencies := h.dependencies()
	dependencies.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	if h.Edge, err = edge.New(edge.Config{}, dependencies, shop(t, manifest.Query)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: listener, Config: edge.NewServer(h, dependencies.Log)}
	server.Start()
	t.Cleanup(server.Close)
	client := server.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

	ask := func(method, path, query string) int {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.URL.RawQuery = query
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var text bytes.Buffer
		_, readErr := text.ReadFrom(response.Body)
		if err := errors.Join(readErr, response.Body.Close(), response.Header.Write(&text)); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(text.String(), value) || strings.Contains(text.String(), h.key) {
			t.Errorf("%s %s: the answer repeats the query: %s", method, path, &text)
		}
		return response.StatusCode
	}
	key := "secret_key=" + h.key
	right := key + "&type=" + value
	for _, c := range []struct {
		method, path, query string
		status              int
	}{
		{http.MethodGet, listPath, right, 200},
		{http.MethodPost, listPath, right, 200},
		{http.MethodGet, listPath, "type=" + value + "&secret_key=" + value, 401},
		{http.MethodGet, listPath, right + "&type=" + value, 400},
		{http.MethodGet, listPath, right + "&page=" + value, 400},
		{http.MethodGet, listPath, right + "&page=%zz" + value, 400},
		{http.MethodGet, listPath, right + ";" + value, 400},
		{http.MethodGet, listPath, right + "&code=%00" + value, 400},
		{http.MethodHead, listPath, right, 405},
		{http.MethodDelete, listPath, right, 405},
		{http.MethodGet, listPath + "/", right, 404},
		{http.MethodGet, "/SHOP/List", right, 404},
		{http.MethodGet, "//shop//list", right, 404},
		{http.MethodGet, "/shop/../shop/list", right, 404},
		{http.MethodPost, "/shop/find", right, 400},
		{http.MethodGet, "/openapi.json", right, 200},
	} {
		if status := ask(c.method, c.path, c.query); status != c.status {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, status, c.status)
		}
	}
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) { return lifecycle.Answer{}, errors.New("a cause") }
	if status := ask(http.MethodGet, listPath, right); status != 500 {
		t.Errorf("a failure: %d", status)
	}
	h.run = func(lifecycle.Request) (lifecycle.Answer, error) { panic("a reason") }
	if status := ask(http.MethodGet, listPath, right); status != 500 {
		t.Errorf("a panic: %d", status)
	}
	server.Close()
	written := log.text.String() + strings.Join(h.observed, "\n")
	for _, expected := range []string{"a cause", "a reason", "status=401", "GET", listPath + " OK"} {
		if !strings.Contains(written, expected) {
			t.Errorf("the log has no %q: %s", expected, written)
		}
	}
	for _, secret := range []string{value, h.key, "type=", "secret_key"} {
		if at := strings.Index(written, secret); at >= 0 {
			t.Errorf("the log contains %q: %s", secret, written[max(0, at-200):min(len(written), at+100)])
		}
	}
}
