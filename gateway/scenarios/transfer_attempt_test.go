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
	w := newWorld(t, transfers, s, handClock())
	w.up.way = wayNamed("not sent")
	w.want(w.create("A"), notSentLater)
	first := w.stored("A")
	w.pass(time.Hour)
	w.up.way = wayNamed("unknown, not made")
	w.up.find = func(sdk.Lookup) sdk.StatusUpdate { return sdk.NoStatus(sdk.BlameUpstream, "busy") }
	w.want(w.create("A", "amount", json.Number("20001")), "Pending")
	m := w.stored("A")
	w.hear(sdk.StatusUpdate{Reference: first.UpstreamReference(), Status: sdk.StatusDone, Amount: m.Amount, Currency: "IDR", EventID: "x"})
	w.pass(time.Minute)
	d := Decision{Movement: m.ID, SentAs: first.UpstreamReference(), Operator: ayu, Outcome: movement.OverrideSucceeded, Reason: "their portal shows it", Alone: true}
	if _, err := w.Decide(t.Context(), d); fault.From(err).Code != fault.DuplicateReference || w.stored("A").State != movement.Acknowledged {
		t.Errorf("the first: %v, and the second stands at %s", err, w.stored("A").State)
	}
	d.SentAs = m.UpstreamReference()
	if _, err := w.Decide(t.Context(), d); err != nil || w.stored("A").State != movement.Succeeded {
		t.Errorf("the second: %v, it stands at %s", err, w.stored("A").State)
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
	onBoth(t, transfers, func(w *world) {
		w.limits = upTo("count", 1)
		w.Catalog = unquoted
		for _, c := range [][2]string{{"A", "Success"}, {"B", "POLICY_DENIED no after_change"}} {
			r := w.request(c[0])
			r.Operation = operationIn(unquoted, walletPath)
			w.want(w.run(r), c[1])
		}
		if w.up.total() != 1 {
			w.Errorf("moved %d times", w.up.total())
		}
	})
}
