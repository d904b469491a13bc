// Package console_test plays what people do in the consoles, in a browser.
package console_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestConsoles plays the stories beside each other at one gateway, each with a merchant and people of its own. A story
// judges each page once: by axe, in light or dark, on a phone or on a desk, for what the page's policy blocks and for
// what its scripts throw.
func TestConsoles(t *testing.T) { //nolint:tparallel // the stories are parallel within one subtest, after which the ledger is checked
	t.Parallel()
	g := harness.Start(t, harness.Settings{})
	t.Run("headers are bounded", func(t *testing.T) { wantBoundedHeaders(t, g) })
	b := browser.Start(t)
	t.Run("stories", func(t *testing.T) {
		for _, name := range []string{"merchant", "operators", "override", "keyboard", "pages"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				play(t, b, g, name)
			})
		}
	})
	g.WantCleanLedger(t)
}

// play plays NAME.mjs.
func play(t *testing.T, b *browser.Browser, g *harness.Program, name string) {
	t.Helper()
	m, other := g.Merchants[harness.Large], g.Merchants[harness.Small]
	if name != "merchant" { // whose callbacks the inbox of gerbang dev must verify: it knows the demo merchants alone
		m = harness.NewMerchant(t, g, "payments", "wallet1", "wallet2")
	}
	if out := b.Run(t, name+".mjs", []string{
		"STORY=" + name, "MERCHANT=" + m.MerchantID, "OTHER=" + other.MerchantID, "LIVE_KEY=" + m.LiveKey, "TEST_KEY=" + m.TestKey,
		"API_URL=" + g.APIURL, "SANDBOX_URL=" + g.SandboxURL, "CONSOLE_URL=" + g.ConsoleURL, "ADMIN_TOKEN=" + g.AdminToken,
		"OWNER_URL=" + inviteDev(t, g, "merchant", "invite", m.MerchantID, mail(name, "owner")),
		"OPERATOR_URL=" + inviteDev(t, g, "operator", "invite", mail(name, "operator"), "--role", "admin"),
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}

// mail is the address of somebody in a story.
func mail(story, who string) string { return who + "-" + story + "@gerbang.test" }

// inviteDev is a link into one of the consoles of gerbang dev.
func inviteDev(t *testing.T, g *harness.Program, command ...string) string {
	t.Helper()
	origin := func(link string) string {
		at, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		return at.Scheme + "://" + at.Host
	}
	config := filepath.Join(t.TempDir(), "dev.yaml")
	text := fmt.Sprintf("database_url: %q\nkeyset_file: %q\npublic_url: %q\nplugins_dir: %q\nmerchants_console_url: %q\noperators_console_url: %q\n",
		g.DatabaseURL, filepath.Join(g.Data, "keyset.json"), g.APIURL, filepath.Dir(config), origin(g.OwnerURL), origin(g.OperatorURL))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var invited struct {
		URL string `json:"url"`
	}
	g.MustRun(t, "", &invited, append(command, "--config", config)...)
	return invited.URL
}

// wantBoundedHeaders: on no listener does a connection get memory for as many headers as
// it likes.
func wantBoundedHeaders(t *testing.T, g *harness.Program) {
	t.Helper()
	for _, listener := range []string{g.APIURL, g.ConsoleURL, g.MerchantsConsoleURL} {
		at, err := url.Parse(listener)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at.Host)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		// 32 KiB are more than any may send, and less than a socket holds unread.
		if _, err := io.WriteString(conn, "GET /signin HTTP/1.1\r\nHost: "+at.Host+"\r\nX-Long: "+strings.Repeat("x", 32<<10)+"\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %s", listener, answer.Status)
		}
	}
}
