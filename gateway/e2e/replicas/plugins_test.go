package replicas_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// comesUpWithin is longer than the pause between two starts of a plugin, the minute that it
// must have run to be taken for mended, and a look, on a busy machine.
const comesUpWithin = 10 * time.Minute

// TestBrokenPluginIsAlone starts a replica with plugins that are not there or not what
// was approved: it serves the others, operators are told, and what is mended is served
// without a restart. Once a manifest is known its routes exist without its plugin. That an
// exception ends a minute after its plugin is mended is seen in the long tier.
func TestBrokenPluginIsAlone(t *testing.T) {
	t.Parallel()
	databaseURL := harness.ServeDatabase(t)
	d := harness.NewDeployment(t)
	absent, other := harness.Approve(t, "wallet1"), harness.Approve(t, "wallet2")
	whole := absent.Path
	absent.Path = filepath.Join(d.Dir, "wallet1")
	other.ManifestDigest = strings.Repeat("0", 64)
	p := d.Launch(t, databaseURL, d.Approved, absent.Beside(), other.Beside())
	d.Join(t, p)
	s := d.NewShop(t, p, "growth")
	s.Create(t, harness.Fields{"amount": 20001})
	wantPlugins(t, p, map[string]bool{"payments": true, "wallet1": false, "wallet2": false})
	if a := s.Ask(t, "/wallet1/transactions", nil); a.Code != fault.NotFound {
		t.Errorf("a route that no manifest has ever named: %s", a)
	}
	p.AwaitException(t, comesUpWithin, movement.ReasonPlugin, "plugin wallet1", "no such file")
	p.AwaitException(t, comesUpWithin, movement.ReasonPlugin, "plugin wallet2", "approved is "+other.ManifestDigest[:8])

	place(t, whole, absent.Path)
	harness.Await(t, comesUpWithin, "the route of a plugin that is mended", func() bool {
		return s.Ask(t, "/wallet1/transactions", nil).Code == fault.NoConnection
	})
	wantPlugins(t, p, map[string]bool{"payments": true, "wallet1": true, "wallet2": false})
	if tier.IsLong() {
		awaitReasons(t, p, "plugin wallet2")
	}
	p.Stop(t)

	// The next replica knows both from the database.
	gone := d.Approved
	gone.Path = filepath.Join(d.Dir, "payments")
	p = d.Launch(t, databaseURL, gone, absent.Beside())
	d.Join(t, p)
	s = s.At(p)
	if a := s.Ask(t, "/payments/create", s.PaymentBody(nil)); a.Code != fault.ProviderUnavailable || a.Sent != fault.SentNo {
		t.Errorf("a payment without a plugin: %s", a)
	}
	p.AwaitException(t, comesUpWithin, movement.ReasonPlugin, "plugin payments", "no such file")
	place(t, d.Approved.Path, gone.Path)
	harness.Await(t, comesUpWithin, "payments of a plugin that is mended", func() bool {
		return s.Ask(t, "/payments/create", s.PaymentBody(nil)).Success
	})
	if tier.IsLong() {
		awaitReasons(t, p, "plugin wallet2") // nobody has mended that one, and it is configured no more
	}
}

// place has a plugin's file be where it was missing, as a whole.
func place(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// wantPlugins wants a replica that is ready, whatever is with its plugins, and says so.
func wantPlugins(t *testing.T, p *harness.Program, want map[string]bool) {
	t.Helper()
	status, body, _ := p.Get(t, p.ConsoleURL+"/readyz")
	var readiness adminapi.Readiness
	if err := json.Unmarshal(body, &readiness); err != nil || status != http.StatusOK || !readiness.Ready {
		t.Errorf("/readyz: %d %s", status, body)
	}
	said := map[string]bool{}
	for _, check := range readiness.Checks {
		if name, ok := strings.CutPrefix(check.Name, "plugin "); ok {
			said[name] = check.OK
		}
	}
	if !maps.Equal(said, want) {
		t.Errorf("/readyz says %v of the plugins, want %v", said, want)
	}
	_, metrics, _ := p.Get(t, p.ConsoleURL+"/metrics")
	for name, up := range want {
		line := map[bool]string{true: `gerbang_plugin_up{provider="` + name + `"} 1`, false: `gerbang_plugin_up{provider="` + name + `"} 0`}[up]
		if !strings.Contains(string(metrics), line) {
			t.Errorf("/metrics has no %s", line)
		}
	}
}

// awaitReasons waits until exactly these plugins are open exceptions.
func awaitReasons(t *testing.T, p *harness.Program, subjects ...string) {
	t.Helper()
	harness.Await(t, comesUpWithin, "the exceptions of the plugins that are down, once each", func() bool {
		var listed []string
		exceptions, err := adminapi.ListExceptions.Call(t.Context(), p.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
		for _, x := range exceptions {
			if x.Reason == movement.ReasonPlugin {
				listed = append(listed, x.Subject)
			}
		}
		return err == nil && slices.Equal(listed, subjects)
	})
}
