package reconcile

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestARowThatFailed takes back what it told before, and says nothing of what is told
// after it: the next try has the same name.
func TestARowThatFailed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 14, 30, 0, 0, time.UTC)
	paid := sdk.StatementLine{ID: "s1", Reference: "s1", Amount: 1000, At: at}
	failed := sdk.StatementLine{ID: "s1/failed", Reference: "s1", Amount: 1000, At: at.Add(time.Minute), Failed: true}
	for name, c := range map[string]struct {
		told                   []sdk.StatementLine
		paid, takenBack, fails bool
	}{
		"paid, then failed": {[]sdk.StatementLine{paid, failed}, true, true, false},
		"failed, then paid": {[]sdk.StatementLine{failed, paid}, true, false, false},
		"failed":            {[]sdk.StatementLine{failed}, false, true, true},
		"paid":              {[]sdk.StatementLine{paid}, true, false, false},
	} {
		lines := linesOf(c.told)
		if len(lines) != 1 || lines[0].Paid != c.paid || lines[0].ReversedAt.IsZero() == c.takenBack || lines[0].Failed != c.fails || lines[0].Differs {
			t.Errorf("%s: %+v", name, lines)
		}
	}
}
