package transfer_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// checkTransferCallbacks receives the callbacks of every final state in the inbox
// of the sandbox, verified and byte for byte.
func checkTransferCallbacks(t *testing.T, p *harness.Program) {
	s := p.Shop(harness.Large, "test") // the inbox knows the demo merchants' secrets alone
	inbox := p.SandboxURL + "/inbox"
	type sent struct {
		transfer
		reference, first, ends string
		returned               bool
	}
	var all []sent
	for _, r := range routes {
		all = append(all,
			sent{r.newTransfer(), harness.NewReference(), "Success", "Success", false},
			sent{r.withPlan("33"), harness.NewReference(), "Pending", "Success", false},
			sent{r.withPlan("34"), harness.NewReference(), "Pending", "Failed", false},
			sent{r.withPlan("35"), harness.NewReference(), "Pending", "Failed", false},
			sent{r.withPlan("41"), harness.NewReference(), "Pending", "Success", false},
			sent{r.withPlan("46"), harness.NewReference(), "Pending", "Success", false},
			sent{r.withPlan("47"), harness.NewReference(), "Pending", "Success", false},
			sent{r.withPlan("49"), harness.NewReference(), "Pending", "Success", false},
			sent{r.withPlan("50"), harness.NewReference(), "Pending", "Success", false},
		)
	}
	// Of a transfer to a wallet nobody is notified, so that a success is never
	// asked about again.
	all = append(all, sent{toBank.withPlan("44"), harness.NewReference(), "Success", "Success", true})
	for _, one := range all {
		sends(t, s, one.transfer, one.reference, one.first, "X-Callback-URL", inbox)
	}
	refused := toWallet.to("08996647679")
	reference := harness.NewReference()
	harness.DestinationRefused.Want(t, "refused", s.Ask(t, refused.path, refused.body(reference), "X-Callback-URL", inbox), reference, "phone")
	all = append(all, sent{refused, reference, "", "Failed", false})
	for _, one := range all {
		ends := one.ends
		if one.returned { // which reads failed from then on
			ends = "Failed"
		}
		stands := awaitTransfer(t, s, one.transfer, one.reference, "", ends, heardWithin)
		told := p.AwaitInbox(t, "transfer.status_update", one.reference)
		then := stands
		then.Status, then.Returned, then.ReturnedAt = one.ends, 0, "" // the rest came after it
		one.isCallback(t, told.Body, "transfer.status_update", one.reference, then)
		if !told.Verified || told.By["mode"] != "test" || told.By["merchant_id"] != s.MerchantID {
			t.Errorf("%+v", told)
		}
		if one.returned {
			back := p.AwaitInbox(t, "transfer.returned", one.reference)
			if one.isCallback(t, back.Body, "transfer.returned", one.reference, stands); stands.ReturnedAt == "" || stands.Returned != one.amount {
				t.Errorf("taken back: %+v", stands)
			}
		}
	}
	var inboxed []harness.InboxEntry
	p.Sandbox(t, "/inbox.json", nil, &inboxed)
	events := map[string]map[string]bool{}
	for _, a := range inboxed {
		if events[a.Reference+a.Event] == nil {
			events[a.Reference+a.Event] = map[string]bool{}
		}
		if events[a.Reference+a.Event][a.WebhookID] = true; len(events[a.Reference+a.Event]) > 1 {
			t.Errorf("%s of %s was told as %v", a.Event, a.Reference, events[a.Reference+a.Event])
		}
	}
	p.WantException(t, "returned", s.MerchantID)
}

// checkPublicCases plays DANA's public test cases through the API, except those
// about signatures, currencies and missing numbers, which no merchant can cause.
func checkPublicCases(t *testing.T, p *harness.Program) {
	s := newSender(t, p, "live")
	type outcome struct {
		harness.Refusal
		names []string
		first string // the status of an answer
		ends  string
	}
	done := outcome{harness.Refusal{}, nil, "Success", "Success"}
	type test struct {
		transfer
		inquired, sent outcome
	}
	inquiredNo := func(r harness.Refusal, names ...string) outcome { return outcome{Refusal: r, names: names} }
	tests := map[string]test{
		"the ordinary phone":         {toWallet.to("0811742234"), done, done},
		"4033705 frozen":             {toWallet.to("08123456667"), inquiredNo(harness.DestinationInvalid, "phone"), inquiredNo(harness.DestinationInvalid, "phone")},
		"4033705 nobody there":       {toWallet.to("08152768647"), inquiredNo(harness.DestinationInvalid, "phone"), inquiredNo(harness.DestinationInvalid, "phone")},
		"4033702 more than it takes": {toWallet.newTransfer().of(20_000_002), inquiredNo(harness.InvalidInput, "amount"), inquiredNo(harness.InvalidInput, "amount")},
		"a timeout":                  {toWallet.to("08551005454"), inquiredNo(harness.ProviderTimeout), inquiredNo(harness.ProviderUnavailable)},
		"4033805 at the transfer":    {toWallet.to("08996647679"), done, inquiredNo(harness.DestinationRefused, "phone")},
		"5003801 and done":           {toWallet.to("08551008794"), done, outcome{first: "Pending", ends: "Success"}},
		"5003800 and not done":       {toWallet.to("08121111111"), done, outcome{first: "Pending"}},
		"4033814 a trillion":         {toWallet.newTransfer().of(1_000_000_000_000), inquiredNo(harness.InvalidInput, "amount"), inquiredNo(harness.InvalidInput, "amount")},
		"the ordinary account":       {toBank.to("2460888509"), done, done},
		"4034218":                    {toBank.to("81298055132"), inquiredNo(harness.DestinationInvalid, "account_no"), inquiredNo(harness.DestinationInvalid, "account_no")},
		"4044211":                    {toBank.to("815919191"), inquiredNo(harness.DestinationInvalid, "account_no"), inquiredNo(harness.DestinationInvalid, "account_no")},
		"4044208":                    {toBank.to("855100800"), inquiredNo(harness.ProviderUnavailable), inquiredNo(harness.ProviderUnavailable)},
		"4034303 at the transfer":    {toBank.to("82298055100"), done, inquiredNo(harness.ProviderRejected)},
		"5004300 and not done":       {toBank.to("8121111111"), done, outcome{first: "Pending"}},
		"5004301 and done":           {toBank.to("8551008794"), done, outcome{first: "Pending", ends: "Success"}},
		"4034318 at the transfer":    {toBank.to("81398055100"), done, inquiredNo(harness.DestinationRefused, "account_no")},
		"4034214 fifty billion":      {toBank.newTransfer().of(50_000_000_000), inquiredNo(harness.InquiryRejected), inquiredNo(harness.InquiryRejected)},
	}
	inquiries := map[string]string{toWallet.path: "/wallet1/inquiry", toBank.path: "/transfer/inquiry"}
	ordinary := func(t *testing.T, times int) {
		t.Helper()
		for range times {
			if a := s.Ask(t, "/wallet1/inquiry", toWallet.to("0811742234").body("")); !a.Success {
				t.Fatalf("an ordinary inquiry: %s", a)
			}
		}
	}
	// A third of the cases are the provider's own faults. In whatever order they come,
	// they must not be half of the account's calls: its breaker would open.
	ordinary(t, 2*len(tests))
	t.Run("all", func(t *testing.T) {
		for name, c := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				// Two calls of a case may be the provider's faults. What is good after them
				// outweighs them in any window of the breaker that they are in.
				defer ordinary(t, 3)
				a := s.Ask(t, inquiries[c.path], c.body(""))
				if c.inquired.Code == "" {
					if !a.Success {
						t.Errorf("inquired: %s", a)
					}
				} else {
					c.inquired.Want(t, "inquired", a, "", c.inquired.names...)
				}
				reference := harness.NewReference()
				if c.sent.Code != "" {
					a := s.Ask(t, c.path, c.body(reference))
					c.sent.Want(t, "sent", a, reference, c.sent.names...)
					if name == "a timeout" && a.Message != "The provider could not tell who the receiver is. Nothing was sent." {
						t.Errorf("a timeout: %s", a)
					}
					c.wantMoved(t, p, 0)
					known := s.Ask(t, "/wallet1/transfer/status", harness.Fields{"external_id": reference})
					if refused := c.sent.Sent == fault.SentRefused; refused != known.Success || refused && transferOf(known).Status != "Failed" {
						t.Errorf("its status: %s", known)
					}
					return
				}
				sends(t, s, c.transfer, reference, c.sent.first)
				if c.sent.ends == "" {
					c.wantMoved(t, p, 0)
					awaitTransfer(t, s, c.transfer, reference, "", c.sent.first, 0)
					return
				}
				c.wantMoved(t, p, 1)
				awaitTransfer(t, s, c.transfer, reference, "", c.sent.ends, heardWithin)
			})
		}
	})
	p.WantException(t, "our_account", "wallet1", s.MerchantID)
}
