package console_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestEveryOtherPage plays pages.mjs, which judges every page as TestAMerchantsOwner does.
func TestEveryOtherPage(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	g := harness.Start(t, harness.Settings{})
	m := g.Merchants[harness.Large]
	if out := b.Run(t, "pages.mjs", []string{
		"OWNER_URL=" + g.OwnerURL, "OPERATOR_URL=" + g.OperatorURL, "API_URL=" + g.APIURL, "SANDBOX_URL=" + g.SandboxURL,
		"MERCHANT=" + m.MerchantID, "LIVE_KEY=" + m.LiveKey, "TEST_KEY=" + m.TestKey,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}
