package console_test

import (
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/browser"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestKeyboardAlone plays keyboard.mjs.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	g := harness.Start(t, harness.Settings{})
	if out := b.Run(t, "keyboard.mjs", []string{
		"OPERATOR_URL=" + g.OperatorURL, "OWNER_URL=" + g.OwnerURL, "API_URL=" + g.APIURL,
		"MERCHANT=" + g.Merchants[0].MerchantID, "KEY=" + g.Merchants[0].TestKey,
	}); out != "" {
		t.Errorf("what the keyboard does not reach, or does not show:\n%s", strings.TrimSpace(out))
	}
}
