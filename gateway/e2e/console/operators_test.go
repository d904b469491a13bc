package console_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestOperators plays operators.mjs, which judges every page as TestAMerchantsOwner does.
func TestOperators(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	g := harness.Start(t, harness.Settings{})
	if out := b.Run(t, "operators.mjs", []string{
		"OPERATOR_URL=" + g.OperatorURL, "API_URL=" + g.APIURL, "SANDBOX_URL=" + g.SandboxURL,
		"MERCHANT=" + g.Merchants[0].MerchantID, "KEY=" + g.Merchants[0].TestKey,
	}); out != "" {
		t.Errorf("what is wrong with the pages:\n%s", strings.TrimSpace(out))
	}
}
