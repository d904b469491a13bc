package dev

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
)

func TestListensOnLoopbackAlone(t *testing.T) {
	t.Parallel()
	for address, fine := range map[string]bool{
		"127.0.0.1:8080": true, "127.0.0.9:0": true, "[::1]:1": true, "localhost:0": true,
		"0.0.0.0:8080": false, ":8080": false, "[::]:8080": false, "10.0.0.1:80": false, "example.com:80": false, "127.0.0.1": false,
	} {
		if err := onLoopback(address); (err == nil) != fine {
			t.Errorf("%s: %v, want fine %v", address, err, fine)
		}
	}
}

func TestRunRefusesTheWorld(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	err := Run(t.Context(), Options{Data: dir, Listen: "0.0.0.0:0", Console: "127.0.0.1:0", MerchantsConsole: "127.0.0.1:0", Sandbox: "127.0.0.1:0"})
	if err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("got %v, want an error that names --listen", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Error("a refused start left a data directory behind")
	}
}

func TestStateIsKeptAndPrivate(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	first.Merchants = []merchant{{MerchantID: "mer_1", LiveKey: "sk_live_x"}}
	if err := first.save(); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("two at once: got %v, want an error that names --data", err)
	}
	first.release()
	again, err := openState(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer again.release()
	if again.AdminToken != first.AdminToken || len(again.Merchants) != 1 || again.Merchants[0].LiveKey != "sk_live_x" {
		t.Errorf("got %+v, want what was saved", again)
	}
	info, err := os.Stat(filepath.Join(dir, "dev.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestABrokenStateIsNotThrownAway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "dev.json")
	if err := os.WriteFile(path, []byte(`{"admin_token": "x`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openState(dir); err == nil || !strings.Contains(err.Error(), "dev.json") {
		t.Errorf("got %v, want an error that names the file", err)
	}
	if content, _ := os.ReadFile(path); len(content) == 0 {
		t.Error("the file is gone")
	}
}

// newTestDoor is a door before one simulator, whose control API is a function.
func newTestDoor(t *testing.T, api string, control http.HandlerFunc) string {
	t.Helper()
	upstream := httptest.NewServer(control)
	t.Cleanup(upstream.Close)
	d := &door{api: api, url: "http://door", inbox: newInbox(), mails: newMails(), log: slog.New(slog.DiscardHandler), sandboxes: []*simulator{{
		plugin: plugin{name: "payments"}, Simulator: sandbox.NewSimulator("payments", "", "control", strings.TrimPrefix(upstream.URL, "http://"), slog.New(slog.DiscardHandler)),
	}}}
	server := httptest.NewServer(d.routes())
	t.Cleanup(server.Close)
	return server.URL
}

func ask(ctx context.Context, t *testing.T, url, body string) (int, string) {
	t.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

func TestDoorReadsACheckoutPageAsAPayerDoes(t *testing.T) {
	t.Parallel()
	const provider = "http://127.0.0.1:1/web/abc?x=1&y=2"
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/checkout/link" {
			http.Redirect(w, r, provider, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, `<link rel="payment" href="`+strings.ReplaceAll(provider, "&", "&amp;")+`">`)
	}))
	t.Cleanup(gateway.Close)
	paid := make(chan map[string]any, 1)
	url := newTestDoor(t, gateway.URL, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer control" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var order map[string]any
		_ = json.NewDecoder(r.Body).Decode(&order)
		paid <- order
		_, _ = io.WriteString(w, `{"provider":"payments","state":"PAID"}`)
	})
	for _, page := range []string{"/checkout/link", "/checkout/shown"} {
		status, body := ask(t.Context(), t, url+"/pay", `{"url":"`+gateway.URL+page+`","amount":7}`)
		if status != http.StatusOK || !strings.Contains(body, "PAID") {
			t.Fatalf("%s: got %d %s", page, status, body)
		}
		if order := <-paid; order["url"] != provider || order["amount"] != float64(7) {
			t.Errorf("%s: paid %v, want the provider's page and the payer's amount", page, order)
		}
	}
}

func TestDoorTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	url := newTestDoor(t, "http://gateway.invalid", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/_sandbox/pay":
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"nothing of this upstream"}`)
		case "/_sandbox/faults":
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":"no such fault"}`)
		case "/_sandbox/movements":
			_, _ = io.WriteString(w, `[]`)
		case "/_sandbox/describe":
			_, _ = io.WriteString(w, `{"orders":[{"name":"refund","effect":"takes back"}]}`)
		case "/_sandbox/refund", "/_sandbox/clock":
			_, _ = io.Copy(w, r.Body)
		}
	})
	for _, c := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/pay", `{"qr_string":"x"}`, 404, "no simulated provider"},
		{"/pay", `not json`, 400, "JSON"},
		{"/pay", `{"qr":"x"}`, 400, "qr is not a known field"},
		{"/faults", `{"provider":"nobody","fault":"latency","count":1}`, 400, "payments"},
		{"/faults", `{"provider":"payments","fault":"odd","count":1}`, 400, "no such fault"},
		{"/movements", "", 200, "[]"},
		{"/providers/payments/refund", `{"reference":"a"}`, 200, `{"reference":"a"}`},
		{"/providers/payments/clock", `{"advance":"1h"}`, 200, `{"advance":"1h"}`},
		{"/providers/payments/connect", `{}`, 404, "no such order"},
		{"/providers/nobody/refund", `{}`, 404, "no such provider"},
		{"/elsewhere", "", 404, "404"},
	} {
		status, body := ask(t.Context(), t, url+c.path, c.body)
		if status != c.status || !strings.Contains(body, c.says) {
			t.Errorf("%s %s: got %d %s, want %d with %q", c.path, c.body, status, body, c.status, c.says)
		}
	}
}
