package app_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// outflow is a directory with the default policy, other limits of money out, and
// a rule about holders' names.
type outflow struct {
	dir  string
	data fields
}

// otherHolder refuses what goes to somebody else than the caller believes.
const otherHolder = `package gerbang

refusals contains "The account is somebody else's." if input.told.name_match == false
`

func newOutflow(t *testing.T) *outflow {
	t.Helper()
	o := &outflow{dir: t.TempDir()}
	for _, name := range []string{"admit.rego", "limits.rego", "data.json"} {
		content, err := os.ReadFile(filepath.Join(root, "policy", "rego", name))
		if err != nil {
			t.Fatal(err)
		}
		if name == "data.json" {
			if err := json.Unmarshal(content, &o.data); err != nil {
				t.Fatal(err)
			}
		}
		o.write(t, name, content)
	}
	o.write(t, "holder.rego", []byte(otherHolder))
	fast := fields{"rate_per_second": 1_000_000, "burst": 1_000_000}
	o.data["tiers"] = fields{"starter": fast, "growth": fast, "scale": fast}
	o.change(t)
	return o
}

func (o *outflow) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (o *outflow) change(t *testing.T) {
	t.Helper()
	content, err := json.Marshal(o.data)
	if err != nil {
		t.Fatal(err)
	}
	o.write(t, "data.json", content)
}

// TestTransferPolicies lets policies bound what goes out, how often names are
// asked for, and to whom money goes.
func TestTransferPolicies(t *testing.T) {
	t.Parallel()
	o := newOutflow(t)
	o.data["quotas"] = fields{"name_inquiry": fields{"operations": []string{"/wallet1/inquiry", "/transfer/inquiry"}, "limit": 5}}
	o.data["transfers"] = fields{"merchants": fields{}, "tiers": fields{
		"starter": fields{"day": fields{"amount": 100_000, "count": 4}, "destination_day": fields{"count": 2}},
	}}
	o.change(t)
	p := start(t, settings{flags: []string{"--policy-dir", o.dir}})
	for name, check := range map[string]func(*testing.T, shop){
		"bounds": checkOutflow, "at once": checkOutflowAtOnce,
	} {
		s := p.shop(small, map[string]string{"bounds": "live", "at once": "test"}[name])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, s)
		})
	}
	t.Run("names", func(t *testing.T) {
		t.Parallel()
		checkNameQuota(t, p.shop(large, "live"), p.shop(large, "test"))
		checkOtherHolder(t, p.shop(large, "live"))
		checkUnnamed(t, p.shop(large, "test"))
		checkHungUp(t, p.shop(large, "live"))
		checkRepeats(t, o, p.shop(large, "live"))
	})
}

// checkOutflow spends the limits of a day, and gets back what came to nothing.
func checkOutflow(t *testing.T, s shop) {
	refuse := func(what string, m remit, reference, part string) {
		t.Helper()
		a := s.ask(t, m.path, m.body(reference))
		if denied.want(t, what, a, reference); !strings.Contains(a.Message, part) || a.Header.Get("X-Svc-Decision-Id") == "" {
			t.Errorf("%s: %s, want %q in it", what, a, part)
		}
		m.wantMoved(t, s.program, 0)
	}
	mine, reference := toWallet.newRemit(), newReference()
	s.sends(t, mine, newReference(), "Success")
	s.sends(t, mine.of(mine.amount+1_000), reference, "Success")
	refuse("a third to one receiver", mine.of(mine.amount+2_000), newReference(), "number of transfers to this destination")
	refuse("the same receiver, written otherwise", toWallet.to("+62 "+mine.to[1:]).of(mine.amount+3_000), newReference(), "to this destination")
	// Asked again, what was sent is answered as it was, whatever the limits say.
	if a := s.ask(t, mine.path, mine.of(mine.amount+1_000).body(reference)); !a.replayed() || !a.Success {
		t.Errorf("the same again: %s", a)
	}
	much, free := toBank.newRemit().of(90_000), newReference()
	refuse("more than a day's amount", much, free, "amount of transfers")
	// What the provider refuses, what nobody took, and what fails is given back.
	for _, c := range []struct {
		m    remit
		want refusal
	}{{toWallet.to("08996647679"), refusedThere}, {toBank.to("82298055100"), refusedElse}, {toBank.to("815919191"), nobodyThere}} {
		m := c.m.of(60_000 + nextRemit.Add(1))
		a := s.ask(t, m.path, m.body(newReference()))
		if a.Code != c.want.code || a.Sent != c.want.sent {
			t.Errorf("to %s: %s", m.to, a)
		}
	}
	failing := toBank.story("34").of(60_000 + nextRemit.Add(1))
	failed := s.sends(t, failing, "", "Pending")
	refuse("while it is open", toBank.newRemit().of(61_000), newReference(), "amount of transfers")
	s.stood(t, failing, "", failed.id(), "Failed", heardWithin)
	s.sends(t, toBank.newRemit().of(61_000), free, "Success")
	s.sends(t, toBank.newRemit(), newReference(), "Success")
	refuse("a fifth on a day", toBank.newRemit().of(1), newReference(), "number of transfers")
	if a := s.ask(t, "/wallet1/inquiry", toWallet.newRemit().body("")); !a.Success {
		t.Errorf("an inquiry is no money out: %s", a)
	}
}

// checkOutflowAtOnce sends more at once than a day allows: exactly what fits
// goes out.
func checkOutflowAtOnce(t *testing.T, s shop) {
	const many = 24
	sent := make([]remit, many)
	answers := make([]answer, many)
	var group sync.WaitGroup
	for i := range sent {
		sent[i] = routes[i%2].newRemit()
		group.Go(func() { answers[i], _ = s.post(t.Context(), sent[i].path, sent[i].body(newReference())) })
	}
	group.Wait()
	var out int
	for i, a := range answers {
		switch {
		case a.Success:
			out++
			sent[i].wantMoved(t, s.program, 1)
		case a.Code != fault.PolicyDenied || a.Sent != fault.SentNo:
			t.Errorf("at once: %s", a)
		default:
			sent[i].wantMoved(t, s.program, 0)
		}
	}
	if out != 4 {
		t.Errorf("%d went out, want the 4 of a day", out)
	}
}

// checkNameQuota asks for names until the month's are used up.
func checkNameQuota(t *testing.T, s, elsewhere shop) {
	ask := func(m remit, names int) {
		t.Helper()
		path := map[string]string{toWallet.path: "/wallet1/inquiry", toBank.path: "/transfer/inquiry"}[m.path]
		a := s.ask(t, path, m.body(""))
		if names > 0 {
			if a.Code == fault.QuotaExceeded {
				t.Errorf("%s to %s: %s", path, m.to, a)
			}
			return
		}
		if a.Code != fault.QuotaExceeded || a.Sent != fault.SentNo || a.Retry != fault.RetryLater {
			t.Errorf("%s beyond the quota: %s", path, a)
		}
		wantUsedUp(t, a)
	}
	// What never reached the provider is not counted, its no is.
	for range 3 {
		ask(toWallet.to("12345"), 5)
		ask(toBank.to("12AB5678"), 5)
	}
	ask(toWallet.newRemit(), 5)
	ask(toBank.newRemit(), 4)
	ask(toWallet.to("08123456667"), 3) // frozen
	ask(toBank.to("815919191"), 2)     // unknown
	ask(toBank.newRemit(), 1)
	for range 3 {
		ask(toWallet.newRemit(), 0)
		ask(toBank.newRemit(), 0)
	}
	if a := elsewhere.ask(t, "/wallet1/inquiry", toWallet.newRemit().body("")); !a.Success {
		t.Errorf("another mode has its own: %s", a)
	}
	s.sends(t, toBank.newRemit(), newReference(), "Success") // a transfer's own inquiry is no answer to anybody
}

// checkOtherHolder sends to an account that is somebody else's.
func checkOtherHolder(t *testing.T, s shop) {
	m, reference := toBank.to("7000004321"), newReference()
	a := s.ask(t, m.path, m.body(reference).with(fields{"account_name": "Orang Lain"}))
	if denied.want(t, "another holder", a, reference); a.Message != "The account is somebody else's." {
		t.Errorf("another holder: %s", a)
	}
	m.wantMoved(t, s.program, 0)
	if a := s.ask(t, m.path, m.body(reference).with(fields{"account_name": "Ibu Nasabah Contoh 4321"})); !a.Success {
		t.Errorf("its holder: %s", a)
	}
	other := m.of(m.amount + 1_000_000)
	s.sends(t, other, newReference(), "Success") // nobody has said who it is
	m.wantMoved(t, s.program, 1)
}

// checkUnnamed sends equal transfers without a reference: two that were answered
// are two, and one that is still open is one.
func checkUnnamed(t *testing.T, s shop) {
	for _, r := range routes {
		m := r.newRemit()
		first, second := s.sends(t, m, "", "Success"), s.sends(t, m, "", "Success")
		if m.wantMoved(t, s.program, 2); first.id() == second.id() {
			t.Errorf("two that were answered are both %s", first.id())
		}
		open := r.story("48").of(m.amount + 1_000_000)
		one, same := s.sends(t, open, "", "Pending"), s.sends(t, open, "", "Pending")
		if open.wantMoved(t, s.program, 1); one.id() != same.id() {
			t.Errorf("one that is open is %s and %s", one.id(), same.id())
		}
		other := s.ask(t, open.path, open.body("").with(fields{"message": "another"}))
		if got := other.remitted().id(); got == one.id() || got == "" {
			t.Errorf("with another message: %s", other)
		}
	}
}

// checkRepeats has a policy take equal transfers for one for a while, also where
// the first was answered. A reference of their own tells them apart.
func checkRepeats(t *testing.T, o *outflow, s shop) {
	o.data["transfers"].(fields)["merchants"] = fields{s.merchant: fields{"repeat_within": "10m"}}
	o.change(t)
	await(t, 2*liveWithin, "the wider window", func() bool {
		m := toBank.newRemit()
		first := s.sends(t, m, "", "Success")
		return s.sends(t, m, "", "Success").id() == first.id()
	})
	m := toWallet.newRemit()
	first := s.sends(t, m, "", "Success")
	for range 3 {
		if a := s.ask(t, m.path, m.body("")); a.remitted().id() != first.id() || !a.replayed() {
			t.Errorf("again within the window: %s", a)
		}
	}
	m.wantMoved(t, s.program, 1)
	s.sends(t, m, newReference(), "Success")
	m.wantMoved(t, s.program, 2)
}

// checkHungUp hangs up while the provider works on a transfer without a
// reference. Who asks again gets that one, and no other.
func checkHungUp(t *testing.T, s shop) {
	for _, r := range routes {
		m := r.newRemit()
		s.injectInto(t, "wallet1", "latency", r.upstream, 1)
		impatient, hang := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() {
			_, err := s.post(impatient, m.path, m.body(""))
			gone <- err
		}()
		await(t, paidWithin, "the claim", func() bool { return isClaimed(t, s.DatabaseURL, m.amount) })
		hang()
		if err := <-gone; err == nil {
			t.Error("who hung up was answered")
		}
		busy := s.ask(t, m.path, m.body(""))
		if busy.Code != fault.InProgress || busy.Header.Get("Retry-After") == "" {
			t.Errorf("while it is being created: %s", busy)
		}
		var first answer
		await(t, heardWithin, "the transfer that nobody waits for", func() bool {
			first = s.ask(t, m.path, m.body(""))
			return first.Code != fault.InProgress
		})
		m.wantAnswer(t, first, "", "Success")
		m.wantMoved(t, s.program, 1)
		if !first.replayed() {
			t.Errorf("asked again: %s", first)
		}
		// That answer was heard, so the next is another.
		if next := s.sends(t, m, "", "Success"); next.id() == first.remitted().id() {
			t.Errorf("after the answer was heard: %s again", next.id())
		}
		m.wantMoved(t, s.program, 2)
	}
}

// isClaimed tells whether a transfer of an amount has been claimed.
func isClaimed(t *testing.T, databaseURL string, amount int64) bool {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), databaseURL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM movements WHERE kind = 'transfer' AND amount = $1", amount).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n > 0
}
