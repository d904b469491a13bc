package console_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestTwoOperators plays override.mjs, which judges every page as TestAMerchantsOwner does.
func TestTwoOperators(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	g := harness.Start(t, harness.Settings{})
	if out := b.Run(t, "override.mjs", []string{
		"OPERATOR_URL=" + g.OperatorURL, "OWNER_URL=" + g.OwnerURL, "API_URL=" + g.APIURL,
		"MERCHANT=" + g.Merchants[0].MerchantID, "KEY=" + g.Merchants[0].TestKey,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
	g.WantCleanLedger(t)
}
