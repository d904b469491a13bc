package override

import (
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
)

// TestSettles: what operators have decided ends the exceptions that asked for it, and no
// others.
func TestSettles(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	m := movement.Movement{CreatedAt: begun}
	for name, c := range map[string]struct {
		outcome movement.OverrideOutcome
		reason  string
		at      time.Time
		over    bool // somebody has resolved it
		want    bool
	}{
		"nobody knew":                           {movement.OverrideFailed, movement.ReasonUnresolved, begun, false, true},
		"nobody knew, and it is sent again":     {movement.OverrideResubmit, movement.ReasonUnresolved, begun, false, true},
		"nobody knew of an earlier attempt":     {movement.OverrideFailed, movement.ReasonUnresolved, begun.Add(-time.Hour), false, true},
		"another amount":                        {movement.OverrideSucceeded, movement.ReasonAmount, begun, false, true},
		"another currency":                      {movement.OverrideSucceeded, movement.ReasonCurrency, begun, false, true},
		"data that can't be read":               {movement.OverrideSucceeded, movement.ReasonUnreadable, begun, false, true},
		"a contradiction":                       {movement.OverrideFailed, movement.ReasonContradiction, begun, false, true},
		"a clock that is behind has listed it":  {movement.OverrideFailed, movement.ReasonContradiction, begun.Add(-2 * movement.ClockSkew), false, true},
		"a contradiction of an earlier attempt": {movement.OverrideFailed, movement.ReasonContradiction, begun.Add(-time.Minute), false, false},
		"another amount, and it is sent again":  {movement.OverrideResubmit, movement.ReasonAmount, begun, false, false},
		"resolved by hand":                      {movement.OverrideSucceeded, movement.ReasonAmount, begun, true, false},
		"one alone decided":                     {movement.OverrideSucceeded, movement.ReasonAlone, begun, false, false},
		"paid again":                            {movement.OverrideSucceeded, movement.ReasonPaidAgain, begun, false, false},
		"an account's fault":                    {movement.OverrideSucceeded, movement.ReasonAccount, begun, false, false},
	} {
		x := movement.Exception{Reason: c.reason, At: c.at}
		if c.over {
			x.ResolvedAt = begun
		}
		if got := settles(movement.Override{Outcome: c.outcome}, x, m); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}
