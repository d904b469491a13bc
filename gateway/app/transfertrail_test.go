package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/console"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// checkTransferTrail follows transfers that succeed, fail later and are refused, by
// every id that anybody has of them.
func checkTransferTrail(t *testing.T, p *program) {
	s := p.shop(large, "live")
	type sent struct {
		remit
		state     string
		moved     int
		reference string
		answer    answer
	}
	all := []sent{
		{remit: toWallet.newRemit(), state: "succeeded", moved: 1}, {remit: toBank.newRemit(), state: "succeeded", moved: 1},
		{remit: toWallet.story("34"), state: "failed", moved: 1}, {remit: toBank.story("34"), state: "failed", moved: 1},
		{remit: toWallet.to("08996647679"), state: "failed"}, {remit: toBank.to("81398055100"), state: "failed"},
	}
	for i, c := range all {
		all[i].reference = newReference()
		all[i].answer = s.ask(t, c.path, c.body(all[i].reference), "X-Callback-URL", p.SandboxURL+"/inbox/trail")
	}
	for _, c := range all {
		var shown console.Movement
		await(t, heardWithin+paidWithin, "the callback's delivery", func() bool {
			p.succeed(t, "", &shown, "transfer", "show", c.reference)
			return len(shown.Callbacks) == 1 && shown.Callbacks[0].State == "delivered"
		})
		if shown.State != c.state || shown.MerchantID != s.merchant || int64(shown.Amount) != c.amount || len(shown.Callbacks[0].Attempts) != 1 {
			t.Errorf("%s to %s is shown as %+v", c.route, c.to, shown)
		}
		c.wantFound(t, p, c.answer, shown)
		c.wantShown(t, p, shown)
		if moved := p.moved(t, c.amount); len(moved) != c.moved || c.moved > 0 && moved[0].Reference != shown.UpstreamReference {
			t.Errorf("shown as sent as %s, and upstream moved %v", shown.UpstreamReference, moved)
		}
	}
	if out, err := p.run(t, "find", "nobody's"); err == nil || !strings.Contains(out, "nothing has the id") {
		t.Errorf("nobody's id: %v %s", err, out)
	}
}

// wantFound finds a transfer by each of its ids, and shows it by each.
func (m remit) wantFound(t *testing.T, p *program, a answer, shown console.Movement) {
	t.Helper()
	ids := map[string][]string{
		"request_id": {a.Header.Get("X-Request-Id")}, "reference": {shown.Reference}, "decision_id": {shown.DecisionID},
		"id": {shown.ID, strings.ReplaceAll(shown.ID, "-", ""), shown.UpstreamReference},
	}
	if ours := a.remitted().id(); a.Success && ours != ids["id"][1] {
		t.Errorf("%s is answered as %s, and shown as %s", shown.Reference, ours, shown.ID)
	}
	if a.Success { // the provider has no name for what it refuses
		ids["provider_reference"] = []string{shown.ProviderReference}
	}
	for by, names := range ids {
		for _, name := range names {
			var found console.Findings
			p.succeed(t, "", &found, "find", name)
			if len(found.Movements) != 1 || found.Movements[0].ID != shown.ID || !slices.Contains(found.Movements[0].By, by) || len(found.Movements[0].Chain) < 3 {
				t.Errorf("%s %q finds %+v", by, name, found)
			}
			var same console.Movement
			p.succeed(t, "", &same, "transfer", "show", name)
			if same.ID != shown.ID {
				t.Errorf("%s %q shows %+v", by, name, same)
			}
		}
	}
}

// wantShown reads the trail as an operator does: who, when, what was sent, what
// came back, and what was told of it.
func (m remit) wantShown(t *testing.T, p *program, shown console.Movement) {
	t.Helper()
	out, err := p.run(t, "transfer", "show", shown.ID)
	if err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, part := range []string{
		shown.MerchantID, shown.Reference, shown.RequestID, shown.DecisionID, shown.PolicyVersion, shown.UpstreamReference,
		fmt.Sprintf(`"amount":%d`, m.amount), fmt.Sprintf("%q", m.to), "claimed", shown.State, "callback transfer.status_update", "delivered 200",
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

// TestTransferDecisions has operators end what the provider tells nonsense of: two
// of them, or one whose word is then reviewed.
func TestTransferDecisions(t *testing.T) {
	t.Parallel()
	d := newDeploymentOf(t, "wallet1")
	ops := d.start(t, dbtest.New(t, "", nil))[0]
	peer := &program{document: ops.document}
	peer.AdminToken = d.peer
	s := d.newShop(t, ops, "scale")
	type sent struct {
		remit
		reference, id string
	}
	send := func(m remit) sent {
		reference := newReference()
		return sent{m, reference, s.sends(t, m, reference, "Pending").id()}
	}
	var young, two, one []sent
	for _, r := range routes {
		young, two, one = append(young, send(r.story(forEver))), append(two, send(r.story(alwaysWrong))), append(one, send(r.story(alwaysWrong)))
	}
	for i := range routes {
		ops.refuses(t, "younger than 24 hours", young[i].id, "success")

		c := two[i]
		s.doubted(t, c.remit, c.reference)
		for range 2 { // of one operator
			if got := ops.decides(t, c.id, "success"); !got.Waiting || got.State != "pending" || got.Decision.Operator != "ops" {
				t.Errorf("proposed: %+v", got)
			}
		}
		peer.refuses(t, "ops has proposed success", c.id, "failed")
		s.stood(t, c.remit, c.reference, "", "Pending", 0)
		if got := peer.decides(t, c.id, "success"); got.Waiting || got.State != "succeeded" || got.Decision.ConfirmedBy != "peer" {
			t.Errorf("confirmed: %+v", got)
		}
		s.wantDecided(t, c.remit, c.reference, "proposed success", "by ops: seen in the portal", "confirmed success", "by peer: seen in the portal")
		peer.refuses(t, "has ended already, as done", c.id, "failed")

		c = one[i]
		s.doubted(t, c.remit, c.reference)
		if got := peer.decides(t, c.id, "success", "--alone"); got.Waiting || got.State != "succeeded" || !got.Decision.Alone {
			t.Errorf("alone: %+v", got)
		}
		s.wantDecided(t, c.remit, c.reference, "decided alone success", "by peer: seen in the portal")
		ops.listed(t, "decided_alone", s.merchant, c.id[:8], "peer alone decided success")
		s.stood(t, young[i].remit, young[i].reference, "", "Pending", 0)
	}
}

// doubted waits until an open transfer stands on the operators' list.
func (s shop) doubted(t *testing.T, m remit, reference string) {
	t.Helper()
	await(t, heardWithin, "a place on the operators' list", func() bool {
		s.stands(t, m, reference, "")
		out, err := s.run(t, "transfer", "show", reference)
		return err == nil && strings.Contains(out, "listed amount_differs")
	})
}

// decides is an operator's word on how a transfer ended, which is taken.
func (p *program) decides(t *testing.T, id, as string, flags ...string) (got console.Settled) {
	t.Helper()
	p.succeed(t, "", &got, append([]string{"transfer", "settle", id, "--as", as, "--reason", "seen in the portal"}, flags...)...)
	return got
}

// refuses is an operator's word that is not taken.
func (p *program) refuses(t *testing.T, part, id, as string) {
	t.Helper()
	if out, err := p.run(t, "transfer", "settle", id, "--as", as, "--reason", "seen in the portal"); err == nil || !strings.Contains(out, part) {
		t.Errorf("settled as %s: %v %s, want a refusal with %q", as, err, out, part)
	}
}

// wantDecided wants a transfer to have succeeded by operators' words, once, and
// its merchant to be told once.
func (s shop) wantDecided(t *testing.T, m remit, reference string, words ...string) {
	t.Helper()
	s.stood(t, m, reference, "", "Success", 0)
	a := s.ask(t, m.path, m.body(reference))
	if m.wantAnswer(t, a, reference, "Success"); !a.replayed() {
		t.Errorf("sent again after the decision: %s", a)
	}
	m.wantMoved(t, s.program, 1)
	if book := booked(t, s.DatabaseURL)[reference]; book.State != "succeeded" || book.Ends != 1 || !strings.Contains(book.Told, `"status":"Success"`) {
		t.Errorf("decided, and booked as %+v", book)
	}
	out, err := s.run(t, "transfer", "show", reference)
	for _, word := range words {
		if err != nil || !strings.Contains(out, word) {
			t.Errorf("%q is not in the trail: %v\n%s", word, err, out)
		}
	}
}
