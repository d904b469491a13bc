package scenarios

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestDecidedAttempt: who names an attempt decides that one and no other.
func TestDecidedAttempt(t *testing.T) {
	t.Parallel()
	s := databaseFor(t)
	p := newPurse(t, s, handClock())
	p.decidesWith(s)
	p.up.way = wayNamed("not sent")
	p.want(p.transfer("A"), notSentLater)
	p.pass(time.Hour)
	p.up.way = wayNamed("unknown, not moved")
	p.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "busy") }
	p.want(p.transfer("A"), "Pending")
	m := p.stored("A")
	first := m
	first.Attempt = 1
	p.hears(sdk.StatusUpdate{Reference: first.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, Currency: "IDR", EventID: "x"})
	p.pass(time.Minute)
	d := Decision{Movement: m.ID, Attempt: 1, Operator: ayu, Outcome: movement.OverrideSucceeded, Reason: "their portal shows it", Alone: true}
	if _, err := p.Decide(t.Context(), d); fault.From(err).Code != fault.DuplicateReference || p.stored("A").State != movement.Acknowledged {
		t.Errorf("attempt 1: %v, and attempt 2 stands at %s", err, p.stored("A").State)
	}
	d.Attempt = 2
	if _, err := p.Decide(t.Context(), d); err != nil || p.stored("A").State != movement.Succeeded {
		t.Errorf("attempt 2: %v, it stands at %s", err, p.stored("A").State)
	}
}

// TestLimitsWithoutAQuote: a transfer that is not asked about first counts, too.
func TestLimitsWithoutAQuote(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile(filepath.Join("..", "..", "plugins", "wallet1", "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	unquoted := catalogOf(bytes.ReplaceAll(document, []byte(`"quote": true,`), nil))
	inPurses(t, func(p *purse) {
		p.limits = upTo("count", 1)
		p.Catalog = unquoted
		for _, c := range [][2]string{{"A", "Success"}, {"B", "POLICY_DENIED no after_change"}} {
			r := p.transferring(c[0])
			r.Operation = operationIn(unquoted, walletPath)
			p.want(p.run(r), c[1])
		}
		if p.up.total() != 1 {
			p.Errorf("moved %d times", p.up.total())
		}
	})
}
