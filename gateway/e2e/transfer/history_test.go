package transfer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// checkTransferHistory finds transfers that succeed, fail later or are refused by
// every id that anybody has of them.
func checkTransferHistory(t *testing.T, p *harness.Program) {
	s := p.Shop(harness.Large, "live")
	type sent struct {
		transfer
		state     string
		moved     int
		reference string
		answer    harness.Answer
	}
	all := []sent{
		{transfer: toWallet.newTransfer(), state: "succeeded", moved: 1}, {transfer: toBank.newTransfer(), state: "succeeded", moved: 1},
		{transfer: toWallet.withPlan("34"), state: "failed", moved: 1}, {transfer: toBank.withPlan("34"), state: "failed", moved: 1},
		{transfer: toWallet.to("08996647679"), state: "failed"}, {transfer: toBank.to("81398055100"), state: "failed"},
	}
	for i, c := range all {
		all[i].reference = harness.NewReference()
		all[i].answer = s.Ask(t, c.path, c.body(all[i].reference), "X-Callback-URL", p.SandboxURL+"/inbox/trail")
	}
	for _, c := range all {
		var shown adminapi.Movement
		harness.Await(t, heardWithin+harness.PaidWithin, "the callback's delivery", func() bool {
			p.MustRun(t, "", &shown, "transfer", "show", c.reference)
			return len(shown.Callbacks) == 1 && shown.Callbacks[0].State == "delivered"
		})
		p.MustRun(t, "", &shown, "transfer", "show", c.reference) // what was read before its callbacks may be older than these
		if shown.State != c.state || shown.MerchantID != s.MerchantID || int64(shown.Amount) != c.amount || len(shown.Callbacks[0].Attempts) != 1 {
			t.Errorf("%s to %s is shown as %+v", c.route, c.to, shown)
		}
		c.wantFound(t, p, c.answer, shown)
		c.wantShown(t, p, shown)
		if moved := moved(t, p, c.amount); len(moved) != c.moved || c.moved > 0 && moved[0].Reference != shown.UpstreamReference {
			t.Errorf("shown as sent as %s, and upstream moved %v", shown.UpstreamReference, moved)
		}
	}
	if out, err := p.Run(t, "find", "nobody's"); err == nil || !strings.Contains(out, "nothing has the id") {
		t.Errorf("nobody's id: %v %s", err, out)
	}
}

// wantFound finds a transfer by each of its ids, and shows it by each.
func (m transfer) wantFound(t *testing.T, p *harness.Program, a harness.Answer, shown adminapi.Movement) {
	t.Helper()
	ids := map[string][]string{
		"request_id": {a.Header.Get("X-Request-Id")}, "reference": {shown.Reference}, "decision_id": {shown.DecisionID},
		"id": {shown.ID, strings.ReplaceAll(shown.ID, "-", ""), shown.UpstreamReference},
	}
	if ours := transferOf(a).id(); a.Success && ours != ids["id"][1] {
		t.Errorf("%s is answered as %s, and shown as %s", shown.Reference, ours, shown.ID)
	}
	if a.Success { // the provider has no name for what it refuses
		ids["provider_reference"] = []string{shown.ProviderReference}
	}
	for by, names := range ids {
		for _, name := range names {
			var found adminapi.FindResult
			p.MustRun(t, "", &found, "find", name)
			if len(found.Movements) != 1 || found.Movements[0].ID != shown.ID || !slices.Contains(found.Movements[0].By, by) || len(found.Movements[0].History) < 3 {
				t.Errorf("%s %q finds %+v", by, name, found)
			}
			var same adminapi.Movement
			p.MustRun(t, "", &same, "transfer", "show", name)
			if same.ID != shown.ID {
				t.Errorf("%s %q shows %+v", by, name, same)
			}
		}
	}
}

// wantShown reads the trail as an operator does: who, when, what was sent, what
// came back, and what was told of it.
func (m transfer) wantShown(t *testing.T, p *harness.Program, shown adminapi.Movement) {
	t.Helper()
	out, err := p.Run(t, "transfer", "show", shown.ID)
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, part := range []string{
		shown.MerchantID, shown.Reference, shown.RequestID, shown.DecisionID, shown.PolicyVersion, shown.UpstreamReference,
		fmt.Sprintf(`"amount":%d`, m.amount), fmt.Sprintf("%q", m.to), "reserved", shown.State, "callback transfer.status_update", "delivered 200",
	} {
		if part == "" || !strings.Contains(out, part) {
			t.Errorf("%q is not in what is shown:\n%s", part, out)
		}
	}
	var came bytes.Buffer
	if shown.RefusalCode == "" {
		if err := json.Compact(&came, shown.Result); err != nil {
			t.Errorf("what came back: %v", err)
		}
	}
	came.WriteString(shown.RefusalMessage)
	if came.Len() == 0 || !strings.Contains(out, came.String()) {
		t.Errorf("%s came back, and is not shown:\n%s", came.String(), out)
	}
	if strings.Contains(out, "sk_live") || strings.Contains(out, "PRIVATE KEY") {
		t.Errorf("secrets are shown:\n%s", out)
	}
}

// TestTransferOverrides has operators end transfers that the provider answers
// with nonsense: two operators together, or one whose override is reviewed.
func TestTransferOverrides(t *testing.T) {
	t.Parallel()
	d := harness.NewDeploymentOf(t, "wallet1")
	ops := d.Start(t, dbtest.New(t, "", nil))[0]
	peer := &harness.Program{Document: ops.Document}
	peer.AdminToken = d.Peer
	s := d.NewShop(t, ops, "scale")
	type sent struct {
		transfer
		reference, id string
	}
	send := func(m transfer) sent {
		reference := harness.NewReference()
		return sent{m, reference, sends(t, s, m, reference, "Pending").id()}
	}
	var young, two, one []sent
	for _, r := range routes {
		young, two, one = append(young, send(r.withPlan(forEver))), append(two, send(r.withPlan(alwaysWrong))), append(one, send(r.withPlan(alwaysWrong)))
	}
	for i := range routes {
		refuseOverride(t, ops, "younger than 24 hours", young[i].id, "success")

		c := two[i]
		awaitUnknown(t, s, c.transfer, c.reference)
		for range 2 { // of one operator
			if got := override(t, ops, c.id, "success"); !got.Waiting || got.State != "pending" || got.Override.Operator != "ops" {
				t.Errorf("proposed: %+v", got)
			}
		}
		refuseOverride(t, peer, "ops has proposed success", c.id, "failed")
		awaitTransfer(t, s, c.transfer, c.reference, "", "Pending", 0)
		if got := override(t, peer, c.id, "success"); got.Waiting || got.State != "succeeded" || got.Override.ConfirmedBy != "peer" {
			t.Errorf("confirmed: %+v", got)
		}
		wantOverridden(t, s, c.transfer, c.reference, "proposed success", "by ops: seen in the portal", "confirmed success", "by peer: seen in the portal")
		refuseOverride(t, peer, "has ended already, as succeeded", c.id, "failed")

		c = one[i]
		awaitUnknown(t, s, c.transfer, c.reference)
		if got := override(t, peer, c.id, "success", "--alone"); got.Waiting || got.State != "succeeded" || !got.Override.Alone {
			t.Errorf("alone: %+v", got)
		}
		wantOverridden(t, s, c.transfer, c.reference, "decided alone success", "by peer: seen in the portal")
		ops.WantException(t, "overridden_alone", s.MerchantID, c.id[:8], "peer alone decided success")
		awaitTransfer(t, s, young[i].transfer, young[i].reference, "", "Pending", 0)
	}
}

// awaitUnknown waits until an open transfer stands on the operators' list.
func awaitUnknown(t *testing.T, s harness.Shop, m transfer, reference string) {
	t.Helper()
	harness.Await(t, heardWithin, "a place on the operators' list", func() bool {
		statusOfTransfer(t, s, m, reference, "")
		out, err := s.Run(t, "transfer", "show", reference)
		return err == nil && strings.Contains(out, "listed amount_differs")
	})
}

// override is an operator's word on how a transfer ended, which is taken.
func override(t *testing.T, p *harness.Program, id, as string, flags ...string) (got adminapi.Overridden) {
	t.Helper()
	p.MustRun(t, "", &got, append([]string{"transfer", "override", id, "--yes", "--as", as, "--reason", "seen in the portal"}, flags...)...)
	return got
}

// refuseOverride is an operator's word that is not taken.
func refuseOverride(t *testing.T, p *harness.Program, part, id, as string) {
	t.Helper()
	if out, err := p.Run(t, "transfer", "override", id, "--yes", "--as", as, "--reason", "seen in the portal"); err == nil || !strings.Contains(out, part) {
		t.Errorf("settled as %s: %v %s, want a refusal with %q", as, err, out, part)
	}
}

// wantOverridden wants a transfer to have succeeded by operators' words, once, and
// its merchant to be told once.
func wantOverridden(t *testing.T, s harness.Shop, m transfer, reference string, words ...string) {
	t.Helper()
	awaitTransfer(t, s, m, reference, "", "Success", 0)
	a := s.Ask(t, m.path, m.body(reference))
	if m.wantAnswer(t, a, reference, "Success"); !a.Replayed() {
		t.Errorf("sent again after the decision: %s", a)
	}
	m.wantMoved(t, s.Program, 1)
	if record := recordedTransfers(t, s.DatabaseURL)[reference]; record.State != "succeeded" || record.Ends != 1 || !strings.Contains(record.Told, `"status":"Success"`) {
		t.Errorf("overridden, and recorded as %+v", record)
	}
	out, err := s.Run(t, "transfer", "show", reference)
	for _, word := range words {
		if err != nil || !strings.Contains(out, word) {
			t.Errorf("%q is not in the trail: %v\n%s", word, err, out)
		}
	}
}
