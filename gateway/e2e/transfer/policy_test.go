package transfer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// outflow is a directory with the default policy, other limits of money out, and
// a rule about holders' names.
type outflow struct {
	dir  string
	data harness.Fields
}

// otherHolder refuses what goes to somebody else than the caller believes.
const otherHolder = `package gerbang

refusals contains "The account is somebody else's." if {
	input.merchant.labels.holders == "checked"
	input.told.name_match == false
}
`

// writePolicy fills the directory of the shared gateway's policy. Merchants of tier starter
// have payout limits; the rule about holders is for those who are labelled for it.
func writePolicy(t testing.TB, dir string) {
	t.Helper()
	o := &outflow{dir: dir}
	for _, name := range []string{"admit.rego", "limits.rego", "data.json"} {
		content, err := os.ReadFile(filepath.Join(harness.Root, "policy", "rego", name))
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
	fast := harness.Fields{"rate_per_second": 1_000_000, "burst": 1_000_000}
	o.data["tiers"] = harness.Fields{"starter": fast, "growth": fast, "scale": fast}
	o.data["transfers"] = harness.Fields{"tiers": harness.Fields{
		"starter": harness.Fields{"day": harness.Fields{"amount": 100_000, "count": 4}, "destination_day": harness.Fields{"count": 2}},
	}}
	content, err := json.Marshal(o.data)
	if err != nil {
		t.Fatal(err)
	}
	o.write(t, "data.json", content)
}

func (o *outflow) write(t testing.TB, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(o.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestTransferPolicies bounds by policy what goes out, how often names are asked
// for, and who may receive.
func TestTransferPolicies(t *testing.T) {
	t.Parallel()
	p := harness.Shared(t)
	for name, check := range map[string]func(*testing.T, harness.Shop){
		"payout limits": checkOutflow, "payout limits at once": checkOutflowAtOnce, "quota of names": checkNameQuota,
		"another holder": checkOtherHolder, "a blocked destination": checkBlocked, "without a reference": checkUnnamed, "with an answer that nobody reads": checkUnread, "repeats": checkRepeats,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSender(t, p, "live")
			if strings.HasPrefix(name, "payout") {
				if _, err := adminapi.SetTier.Call(t.Context(), p.Admin(), adminapi.TierChange{Merchant: s.MerchantID, Tier: "starter", Reason: "for a test"}); err != nil {
					t.Fatal(err)
				}
			}
			check(t, s)
		})
	}
}

// checkBlocked spells two destinations that are on a list in every way that the provider takes, and pays to none, until they are taken off.
func checkBlocked(t *testing.T, s harness.Shop) {
	account, phone := toBank.newTransfer().to, toWallet.newTransfer().to
	national := phone[1:]
	s.MustRun(t, "", nil, "list", "add", "blocked_destinations", "014:"+account, phone, "--reason", "fraud", "--for", "1d")
	harness.Await(t, harness.ReadyWithin, "the list on this replica", func() bool { return s.Ask(t, toBank.path, toBank.to(account).body("")).Code == fault.PolicyDenied })
	by := func(number, separator string) string {
		return number[:4] + separator + number[4:7] + separator + number[7:]
	}
	for r, spellings := range map[route][]string{
		toBank: {account, by(account, " "), by(account, "-"), " " + account, by(account, ".")},
		toWallet: {
			phone, "62" + national, "+62" + national, by(phone, "-"), national, " " + by(phone, " "), "(" + phone[:4] + ") " + phone[4:], by(phone, "\u2011"),
		},
	} {
		for _, spelt := range spellings {
			m := r.to(spelt)
			a := s.Ask(t, m.path, m.body(harness.NewReference()))
			if a.Code != fault.PolicyDenied || !strings.Contains(a.Message, "blocked") {
				t.Errorf("to %q: %s", spelt, a)
			}
			m.wantMoved(t, s.Program, 0)
		}
	}
	sends(t, s, toBank.newTransfer(), harness.NewReference(), "Success")
	s.MustRun(t, "", nil, "list", "remove", "blocked_destinations", "bank/014/"+by(account, "-"), "--reason", "cleared")
	harness.Await(t, harness.ReadyWithin, "money to where it was blocked", func() bool { return s.Ask(t, toBank.path, toBank.to(account).body("")).Success })
}

// checkOutflow uses up the payout limits of a day, and gets back the amounts of
// transfers that failed.
func checkOutflow(t *testing.T, s harness.Shop) {
	refuse := func(what string, m transfer, reference, part string) {
		t.Helper()
		a := s.Ask(t, m.path, m.body(reference))
		if harness.PolicyDenied.Want(t, what, a, reference); !strings.Contains(a.Message, part) || a.Header.Get("X-Svc-Decision-Id") == "" {
			t.Errorf("%s: %s, want %q in it", what, a, part)
		}
		m.wantMoved(t, s.Program, 0)
	}
	mine, reference := toWallet.newTransfer(), harness.NewReference()
	sends(t, s, mine, harness.NewReference(), "Success")
	sends(t, s, mine.of(mine.amount+1_000), reference, "Success")
	refuse("a third to one receiver", mine.of(mine.amount+2_000), harness.NewReference(), "number of transfers to this destination")
	refuse("the same receiver, written otherwise", toWallet.to("+62 "+mine.to[1:]).of(mine.amount+3_000), harness.NewReference(), "to this destination")
	// Asked again, what was sent is answered as it was, whatever the limits say.
	if a := s.Ask(t, mine.path, mine.of(mine.amount+1_000).body(reference)); !a.Replayed() || !a.Success {
		t.Errorf("the same again: %s", a)
	}
	much, free := toBank.newTransfer().of(90_000), harness.NewReference()
	refuse("more than a day's amount", much, free, "amount of transfers")
	// What the provider refuses, what nobody took, and what fails is given back.
	for _, c := range []struct {
		m    transfer
		want harness.Refusal
	}{{toWallet.to("08996647679"), harness.DestinationRefused}, {toBank.to("82298055100"), harness.ProviderRejected}, {toBank.to("815919191"), harness.DestinationInvalid}} {
		m := c.m.of(60_000 + nextTransfer.Add(1))
		a := s.Ask(t, m.path, m.body(harness.NewReference()))
		if a.Code != c.want.Code || a.Sent != c.want.Sent {
			t.Errorf("to %s: %s", m.to, a)
		}
	}
	failing := toBank.withPlan("34").of(60_000 + nextTransfer.Add(1))
	failed := sends(t, s, failing, "", "Pending")
	refuse("while it is open", toBank.newTransfer().of(61_000), harness.NewReference(), "amount of transfers")
	awaitTransfer(t, s, failing, "", failed.id(), "Failed", heardWithin)
	sends(t, s, toBank.newTransfer().of(61_000), free, "Success")
	sends(t, s, toBank.newTransfer(), harness.NewReference(), "Success")
	refuse("a fifth on a day", toBank.newTransfer().of(1), harness.NewReference(), "number of transfers")
	if a := s.Ask(t, "/wallet1/inquiry", toWallet.newTransfer().body("")); !a.Success {
		t.Errorf("an inquiry is no money out: %s", a)
	}
}

// checkOutflowAtOnce sends more at once than a day allows: exactly the limit goes
// out.
func checkOutflowAtOnce(t *testing.T, s harness.Shop) {
	const many = 24
	sent := make([]transfer, many)
	answers := make([]harness.Answer, many)
	var group sync.WaitGroup
	for i := range sent {
		sent[i] = routes[i%2].newTransfer()
		group.Go(func() { answers[i], _ = s.Insist(t.Context(), sent[i].path, sent[i].body(harness.NewReference())) })
	}
	group.Wait()
	var out int
	for i, a := range answers {
		switch {
		case a.Success:
			out++
			sent[i].wantMoved(t, s.Program, 1)
		case a.Code != fault.PolicyDenied || a.Sent != fault.SentNo:
			t.Errorf("at once: %s", a)
		default:
			sent[i].wantMoved(t, s.Program, 0)
		}
	}
	if out != 4 {
		t.Errorf("%d went out, want the 4 of a day", out)
	}
}

// checkNameQuota asks for names until the month's quota is used up.
func checkNameQuota(t *testing.T, s harness.Shop) {
	limit := int64(5)
	if _, err := adminapi.SetLimits.Call(t.Context(), s.Admin(), adminapi.LimitChange{
		Merchant: s.MerchantID,
		Limits:   []adminapi.NewLimit{{Name: "name_inquiry", Limit: &limit}}, Reason: "for a test",
	}); err != nil {
		t.Fatal(err)
	}
	ask := func(m transfer, names int) {
		t.Helper()
		path := map[string]string{toWallet.path: "/wallet1/inquiry", toBank.path: "/transfer/inquiry"}[m.path]
		a := s.Ask(t, path, m.body(""))
		if names > 0 {
			if a.Code == fault.QuotaExceeded {
				t.Errorf("%s to %s: %s", path, m.to, a)
			}
			return
		}
		if a.Code != fault.QuotaExceeded || a.Sent != fault.SentNo || a.Retry != fault.RetryLater {
			t.Errorf("%s beyond the quota: %s", path, a)
		}
		harness.WantQuotaExceeded(t, a)
	}
	// What never reached the provider is not counted, its no is.
	for range 3 {
		ask(toWallet.to("12345"), 5)
		ask(toBank.to("12AB5678"), 5)
	}
	ask(toWallet.newTransfer(), 5)
	ask(toBank.newTransfer(), 4)
	ask(toWallet.to("08123456667"), 3) // frozen
	ask(toBank.to("815919191"), 2)     // unknown
	ask(toBank.newTransfer(), 1)
	for range 3 {
		ask(toWallet.newTransfer(), 0)
		ask(toBank.newTransfer(), 0)
	}
	sends(t, s, toBank.newTransfer(), harness.NewReference(), "Success") // a transfer's own inquiry is no answer to anybody
}

// checkOtherHolder sends to an account that is somebody else's.
func checkOtherHolder(t *testing.T, s harness.Shop) {
	if _, err := adminapi.SetLabels.Call(t.Context(), s.Admin(), adminapi.LabelChange{Merchant: s.MerchantID, Labels: map[string]*string{"holders": new("checked")}, Reason: "for a test"}); err != nil {
		t.Fatal(err)
	}
	m, reference := toBank.to("7000004321"), harness.NewReference()
	a := s.Ask(t, m.path, m.body(reference).With(harness.Fields{"account_name": "Orang Lain"}))
	if harness.PolicyDenied.Want(t, "another holder", a, reference); a.Message != "The account is somebody else's." {
		t.Errorf("another holder: %s", a)
	}
	m.wantMoved(t, s.Program, 0)
	if a := s.Ask(t, m.path, m.body(reference).With(harness.Fields{"account_name": "Ibu Nasabah Contoh 4321"})); !a.Success {
		t.Errorf("its holder: %s", a)
	}
	other := m.of(m.amount + 1_000_000)
	sends(t, s, other, harness.NewReference(), "Success") // nobody has said who it is
	m.wantMoved(t, s.Program, 1)
}

// checkUnnamed sends equal transfers without a reference: the second is refused, also where
// the receiver is written otherwise. One that has failed is in nobody's way.
func checkUnnamed(t *testing.T, s harness.Shop) {
	for _, r := range routes {
		m := r.newTransfer()
		first := sends(t, s, m, "", "Success")
		m.wantDuplicate(t, s.Ask(t, m.path, m.body("")), first.id(), "Success")
		otherwise := m
		if otherwise.to = m.to[:4] + "-" + m.to[4:]; m.path == toWallet.path {
			otherwise.to = "+62 " + m.to[1:]
		}
		m.wantDuplicate(t, s.Ask(t, m.path, otherwise.body("")), first.id(), "Success")
		m.wantMoved(t, s.Program, 1)
		sends(t, s, m, harness.NewReference(), "Success")
		m.wantMoved(t, s.Program, 2)
		open := r.withPlan("48").of(m.amount + 1_000_000)
		one := sends(t, s, open, "", "Pending")
		open.wantDuplicate(t, s.Ask(t, open.path, open.body("")), one.id(), "Pending")
		open.wantMoved(t, s.Program, 1)
		other := s.Ask(t, open.path, open.body("").With(harness.Fields{"message": "another"}))
		if got := transferOf(other).id(); got == one.id() || got == "" {
			t.Errorf("with another message: %s", other)
		}
		failing := r.withPlan("34").of(m.amount + 2_000_000)
		failed := sends(t, s, failing, "", "Pending")
		awaitTransfer(t, s, failing, "", failed.id(), "Failed", heardWithin)
		if next := sends(t, s, failing, "", "Pending"); next.id() == failed.id() {
			t.Errorf("after the first had failed: %s again", next.id())
		}
	}
}

// checkRepeats has a merchant's record let equal transfers without a reference be.
func checkRepeats(t *testing.T, s harness.Shop) {
	if out, err := s.Program.Run(t, "merchant", "limit", s.MerchantID, "--repeat-within", "0s", "--reason", "it pays alike on purpose"); err != nil {
		t.Fatal(out, err)
	}
	harness.Await(t, harness.PolicyLiveWithin, "no window", func() bool {
		m := toBank.newTransfer()
		sends(t, s, m, "", "Success")
		return s.Ask(t, m.path, m.body("")).Success
	})
	m, ids := toWallet.newTransfer(), map[string]bool{}
	for range 4 {
		ids[sends(t, s, m, "", "Success").id()] = true
	}
	if len(ids) != 4 {
		t.Errorf("four are %v", ids)
	}
	m.wantMoved(t, s.Program, 4)
}
