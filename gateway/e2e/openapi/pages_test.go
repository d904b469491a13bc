package openapi_test

import (
	"path/filepath"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/docs"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestPages opens the documents in a browser: axe finds nothing in the guides, nor
// on the API page, and calls can be tried there.
func TestPages(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	p := harness.Shared(t)
	t.Run("guides", func(t *testing.T) {
		t.Parallel()
		var pages []string
		for _, name := range docs.Names() {
			if name != "api" {
				pages = append(pages, name+"="+p.APIURL+"/docs/"+name+"?lang=id", name+"-en="+p.APIURL+"/docs/"+name+"?lang=en")
			}
		}
		if out := b.Run(t, "axe.mjs", nil, pages...); out != "" {
			t.Errorf("what is wrong:\n%s", out)
		}
	})
	t.Run("api", func(t *testing.T) {
		t.Parallel()
		if out := b.Run(t, filepath.Join("testdata", "docs.mjs"), nil, p.APIURL+"/docs/api"); out != "" {
			t.Errorf("what is wrong:\n%s", out)
		}
	})
	t.Run("try", func(t *testing.T) {
		t.Parallel()
		shop := p.Shop(harness.Large, "test")
		if out := b.Run(t, filepath.Join("testdata", "try.mjs"), nil, p.APIURL+"/docs/api?lang=en", shop.Key, shop.MerchantID); out != "" {
			t.Errorf("what is wrong:\n%s", out)
		}
	})
}
