package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
)

// shownPages are the states of a payer's page that people see.
var shownPages = map[string]func(*kind.Checkout){
	"qr":     func(*kind.Checkout) {},
	"test":   func(c *kind.Checkout) { c.Test, c.Colour = true, "#7a1fa2" },
	"both":   func(c *kind.Checkout) { c.PaymentURL, c.Colour, c.Language = "https://pay.example/", "#ffd21f", "en" },
	"paid":   func(c *kind.Checkout) { c.Status, c.PaidAt = "PAID", "2026-11-20T05:03:09Z" },
	"late":   func(c *kind.Checkout) { c.Status = "EXPIRED" },
	"ended":  func(c *kind.Checkout) { c.Status, c.Cancelled, c.Test = "EXPIRED", true, true },
	"failed": func(c *kind.Checkout) { c.Status, c.Language = "FAILED", "en" },
}

// TestPagesHaveNoFindings of axe, of the browser's console or of the page's policy, on
// a phone and a desktop, light and dark.
func TestPagesHaveNoFindings(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	h := build(t)
	h.checkout = func(id string) (kind.Checkout, error) {
		change, ok := shownPages[id]
		if !ok {
			return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
		}
		return pending(change)(id)
	}
	server := httptest.NewServer(http.HandlerFunc(h.ServeHTTP))
	t.Cleanup(server.Close)
	var pages []string
	for name := range shownPages {
		pages = append(pages, name+"="+server.URL+"/checkout/"+name+"?lang=id")
	}
	pages = append(pages, "english="+server.URL+"/checkout/qr?lang=en", "unknown="+server.URL+"/checkout/unknown")
	if out := b.Run(t, "axe.mjs", nil, pages...); out != "" {
		t.Error(out)
	}
	if out := b.Run(t, "testdata/pages.mjs", nil, server.URL); out != "" {
		t.Error(out)
	}
}
