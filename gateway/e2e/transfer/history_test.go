package transfer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// checkTransferHistory finds transfers that succeed, fail later or are refused by
// every id that anybody has of them.
func checkTransferHistory(t *testing.T, p *harness.Program) {
	s := newSender(t, p, "live")
	box := harness.NewReceiver(t, 0)
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
		all[i].answer = s.Ask(t, c.path, c.body(all[i].reference), "X-Callback-URL", box.URL)
	}
	for _, c := range all {
		var shown adminapi.Movement
		show := func() {
			var err error
			if shown, err = adminapi.ShowMovement.Call(t.Context(), p.Admin(), adminapi.MovementID{Movement: c.reference}); err != nil {
				t.Fatal(err)
			}
		}
		harness.Await(t, heardWithin, "the callback's delivery", func() bool {
			show()
			return len(shown.Callbacks) == 1 && shown.Callbacks[0].State == "delivered"
		})
		show() // what was read before its callbacks may be older than these
		if shown.State != c.state || shown.MerchantID != s.MerchantID || int64(shown.Amount) != c.amount || len(shown.Callbacks[0].Attempts) != 1 {
			t.Errorf("%s to %s is shown as %+v", c.route, c.to, shown)
		}
		c.wantFound(t, p, c.answer, shown)
		if c.path == toBank.path { // each end once
			c.wantShown(t, p, shown)
		}
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
			found, err := adminapi.Find.Call(t.Context(), p.Admin(), adminapi.Search{ID: name})
			if err != nil || len(found.Movements) != 1 || found.Movements[0].ID != shown.ID || !slices.Contains(found.Movements[0].By, by) || len(found.Movements[0].History) < 3 {
				t.Errorf("%s %q finds %+v, %v", by, name, found, err)
			}
			if same, err := adminapi.ShowMovement.Call(t.Context(), p.Admin(), adminapi.MovementID{Movement: name}); err != nil || same.ID != shown.ID {
				t.Errorf("%s %q shows %+v, %v", by, name, same, err)
			}
		}
	}
}

// wantShown reads the trail as an operator does: who, when, what was sent, what
// came back, and what was told of it.
func (m transfer) wantShown(t *testing.T, p *harness.Program, shown adminapi.Movement) {
	t.Helper()
	var found adminapi.FindResult
	if p.MustRun(t, "", &found, "find", shown.Reference); len(found.Movements) != 1 || found.Movements[0].ID != shown.ID {
		t.Errorf("gerbang find: %+v", found)
	}
	out, err := p.Run(t, "transfer", "show", shown.Reference)
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, part := range []string{
		shown.MerchantID, shown.Reference, shown.RequestID, shown.DecisionID, shown.PolicyVersion, shown.UpstreamReference,
		fmt.Sprintf(`"amount":%d`, m.amount), fmt.Sprintf("%q", m.to), "reserved", shown.State, "callback transfer.status_update", "delivered 204",
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
	ops := harness.Shared(t)
	made, err := adminapi.CreateOperatorToken.Call(t.Context(), ops.Admin(), adminapi.NewOperatorToken{Name: "peer", Role: "admin"})
	if err != nil {
		t.Fatal(err)
	}
	peer := &harness.Program{Document: ops.Document}
	peer.AdminToken = made.Token
	ops.KeepSecret(harness.Merchant{MerchantID: "peer", LiveKey: made.Token})
	s := newSender(t, ops, "live")
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
			if got := override(t, ops, c.id, "success"); !got.Waiting || got.State != "pending" || got.Override.Operator != "dev" {
				t.Errorf("proposed: %+v", got)
			}
		}
		refuseOverride(t, peer, "dev has proposed success", c.id, "failed")
		awaitTransfer(t, s, c.transfer, c.reference, "", "Pending", 0)
		if got := override(t, peer, c.id, "success"); got.Waiting || got.State != "succeeded" || got.Override.ConfirmedBy != "peer" {
			t.Errorf("confirmed: %+v", got)
		}
		wantOverridden(t, s, c.transfer, c.reference, "proposed success", "by dev: seen in the portal", "confirmed success", "by peer: seen in the portal")
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
		id := statusOfTransfer(t, s, m, reference, "").id()
		all, err := adminapi.ListExceptions.Call(t.Context(), s.Admin(), adminapi.ExceptionFilter{Limit: adminapi.MostListed})
		return err == nil && slices.ContainsFunc(all, func(e adminapi.Exception) bool {
			return e.Reason == "amount_differs" && strings.ReplaceAll(e.Subject, "-", "") == id
		})
	})
}

// override is an operator's decision on a transfer, which is taken. It is given by the
// command.
func override(t *testing.T, p *harness.Program, id, as string, flags ...string) (got adminapi.Overridden) {
	t.Helper()
	p.MustRun(t, "", &got, append([]string{"transfer", "override", id, "--yes", "--as", as, "--reason", "seen in the portal"}, flags...)...)
	return got
}

// refuseOverride is an operator's decision that is not taken.
func refuseOverride(t *testing.T, p *harness.Program, part, id, as string) {
	t.Helper()
	_, err := adminapi.OverrideMovement.Call(t.Context(), p.Admin(), adminapi.NewOverride{Movement: id, As: as, Reason: "seen in the portal"})
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Errorf("overridden as %s: %v, want a refusal with %q", as, err, part)
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
