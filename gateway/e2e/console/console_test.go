package console_test

import (
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
		"MERCHANT=" + g.Merchants[0].MerchantID, "OTHER=" + g.Merchants[1].MerchantID,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}
