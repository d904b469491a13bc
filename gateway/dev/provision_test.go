package dev

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/sandbox"
)

// notes are what fakes were asked, in order.
type notes struct {
	mu    sync.Mutex
	lines []string
}

func (n *notes) add(format string, args ...any) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fmt.Sprintf(format, args...))
}

// newProvisioned is a tree of two merchants whose console and simulators are
// functions of a test that write down what they are asked.
func newProvisioned(t *testing.T, asked *notes) (*tree, *adminapi.Client) {
	t.Helper()
	admin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		data := `{}`
		switch {
		case r.URL.Path == "/admin/plugins":
			data = `[{"provider":"payments","owner":"merchant"},{"provider":"ppob","owner":"platform"}]`
		case strings.Contains(r.URL.Path, "/connections/"):
			asked.add("connection %s %v %v", r.URL.Path, body["mode"], body["credentials"])
			data = `{"notify_path":"/notify/x"}`
		default:
			asked.add("%s %v %v %v", r.URL.Path, body["mode"], body["amount"], body["reference"])
		}
		_, _ = fmt.Fprintf(w, `{"success":true,"data":%s}`, data)
	}))
	t.Cleanup(admin.Close)
	tree := &tree{state: &state{Merchants: []merchant{{MerchantID: "mer_1"}, {MerchantID: "mer_2"}}}}
	for _, name := range []string{"payments", "ppob"} {
		upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]string
			_ = json.NewDecoder(r.Body).Decode(&body)
			if strings.HasSuffix(r.URL.Path, "/hooks") {
				asked.add("hooks %s %s %s", name, body["name"], body["callback_url"])
			}
			_, _ = fmt.Fprintf(w, `{"account":"a","callback_token":"t","credentials":"%s-%s"}`, body["merchant"], body["mode"])
		}))
		t.Cleanup(upstream.Close)
		played := sandbox.NewSimulator(name, "", "", strings.TrimPrefix(upstream.URL, "http://"), slog.New(slog.DiscardHandler))
		tree.sandboxes = append(tree.sandboxes, &simulator{Simulator: played, plugin: plugin{name: name}})
	}
	return tree, adminapi.NewClient(admin.URL, "token")
}

func TestWhoeverOwnsTheAccountIsConnected(t *testing.T) {
	t.Parallel()
	asked := &notes{}
	tree, admin := newProvisioned(t, asked)
	if err := tree.connectAll(t.Context(), admin, "http://api", tree.sandboxes...); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"connection /admin/merchants/mer_1/connections/payments live mer_1-live", "hooks payments " + demo[0].Name + " http://api/notify/x",
		"connection /admin/merchants/mer_1/connections/payments test mer_1-test", "hooks payments " + demo[0].Name + " http://api/notify/x",
		"connection /admin/merchants/mer_2/connections/payments live mer_2-live", "hooks payments " + demo[1].Name + " http://api/notify/x",
		"connection /admin/merchants/mer_2/connections/payments test mer_2-test", "hooks payments " + demo[1].Name + " http://api/notify/x",
		"connection /admin/merchants/platform/connections/ppob live platform-live", "hooks ppob Platform http://api/notify/x",
		"connection /admin/merchants/platform/connections/ppob test platform-test", "hooks ppob Platform http://api/notify/x",
	}
	if !slices.Equal(asked.lines, want) {
		t.Errorf("asked\n%s\nwant\n%s", strings.Join(asked.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestDemoMerchantsBeginWithABalanceInBothModes(t *testing.T) {
	t.Parallel()
	asked := &notes{}
	tree, admin := newProvisioned(t, asked)
	if err := tree.credit(t.Context(), admin); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"/admin/merchants/mer_1/credit live 1e+07 opening balance", "/admin/merchants/mer_1/credit test 1e+07 opening balance",
		"/admin/merchants/mer_2/credit live 1e+07 opening balance", "/admin/merchants/mer_2/credit test 1e+07 opening balance",
	}
	if !slices.Equal(asked.lines, want) {
		t.Errorf("asked %q", asked.lines)
	}
}
