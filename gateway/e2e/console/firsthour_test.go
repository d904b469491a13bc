package console_test

import (
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestFirstHour plays firsthour.mjs on `gerbang serve` with an empty database.
func TestFirstHour(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	d := harness.NewDeployment(t)
	d.Approved.Ports, d.Approved.Read = nil, nil // it reaches no simulator but the gateway's own
	operators, merchants, smtp := harness.FreeAddress(t), harness.FreeAddress(t), harness.FreeAddress(t)
	_, port, _ := net.SplitHostPort(smtp)
	g := d.LaunchAt(t, harness.ServeDatabase(t), harness.Addresses{Listen: "127.0.0.1:0", Console: operators},
		"operators_console_url: http://"+operators, "merchants_console: "+merchants, "merchants_console_url: http://"+merchants,
		"smtp: {host: 127.0.0.1, port: "+port+", from: Gerbang <gerbang@gerbang.test>, tls: none}", "allow_http_callbacks: true")
	d.Join(t, g)
	configs, err := filepath.Glob(filepath.Join(d.Dir, "replica-*.yaml"))
	if err != nil || len(configs) != 1 {
		t.Fatalf("configurations: %v %v", configs, err)
	}
	var invited struct {
		URL string `json:"url"`
	}
	g.MustRun(t, "", &invited, "operator", "invite", "operator-firsthour@gerbang.test", "--role", "admin", "--config", configs[0])
	link, err := url.Parse(invited.URL)
	if err != nil {
		t.Fatal(err)
	}
	if out := b.Run(t, "firsthour.mjs", []string{
		"STORY=firsthour", "OPERATOR_URL=http://" + operators + link.Path, "SMTP_PORT=" + port, "RECEIVER=http://" + harness.FreeAddress(t) + "/callbacks", "DIR=" + t.TempDir(),
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}
