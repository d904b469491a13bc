package scenarios

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk"
)

// TestDecidedRequest: who names a request by its upstream reference decides that one
// and no other that its reference was used for again.
func TestDecidedRequest(t *testing.T) {
	t.Parallel()
	s := keeperFor(t)
	p := newPurse(t, s, handClock())
	p.decidesWith(s)
	p.up.way = wayNamed("not sent")
	p.want(p.transfer("A"), notSentLater)
	first := p.stored("A")
	p.pass(time.Hour)
	p.up.way = wayNamed("unknown, not moved")
	p.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "busy") }
	p.want(p.transfer("A", "amount", json.Number("20001")), "Pending")
	m := p.stored("A")
	p.hears(sdk.StatusUpdate{Reference: first.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, Currency: "IDR", EventID: "x"})
	p.pass(time.Minute)
	d := Decision{Movement: m.ID, SentAs: first.UpstreamReference(), Operator: ayu, Outcome: movement.OverrideSucceeded, Reason: "their portal shows it", Alone: true}
	if _, err := p.Decide(t.Context(), d); fault.From(err).Code != fault.DuplicateReference || p.stored("A").State != movement.Acknowledged {
		t.Errorf("the first: %v, and the second stands at %s", err, p.stored("A").State)
	}
	d.SentAs = m.UpstreamReference()
	if _, err := p.Decide(t.Context(), d); err != nil || p.stored("A").State != movement.Succeeded {
		t.Errorf("the second: %v, it stands at %s", err, p.stored("A").State)
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
