package console_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// TestAMerchantsOwner plays merchant.mjs, which judges every page on the way: in light and
// dark, on a phone and on a desk, by axe, for what the pages' policy blocks and for what
// their scripts throw.
func TestAMerchantsOwner(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	g := harness.Start(t, harness.Settings{})
	if out := b.Run(t, "merchant.mjs", []string{
		"OWNER_URL=" + g.OwnerURL, "API_URL=" + g.APIURL, "SANDBOX_URL=" + g.SandboxURL,
		"CONSOLE_URL=" + g.ConsoleURL, "ADMIN_TOKEN=" + g.AdminToken, "MERCHANT=" + g.Merchants[0].MerchantID, "OTHER=" + g.Merchants[1].MerchantID,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}

// TestHeadersAreBounded: on no listener does a connection get memory for as many headers as
// it likes.
func TestHeadersAreBounded(t *testing.T) {
	t.Parallel()
	g := harness.Start(t, harness.Settings{})
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
