package app_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// checkTransferCallbacks receives what is told of every end in the sandbox's
// inbox, verified and byte for byte.
func checkTransferCallbacks(t *testing.T, p *program) {
	s := p.shop(large, "test")
	inbox := p.SandboxURL + "/inbox"
	type sent struct {
		remit
		reference, first, ends string
		reversed               bool
	}
	var all []sent
	for _, r := range routes {
		all = append(all,
			sent{r.newRemit(), newReference(), "Success", "Success", false},
			sent{r.story("33"), newReference(), "Pending", "Success", false},
			sent{r.story("34"), newReference(), "Pending", "Failed", false},
			sent{r.story("35"), newReference(), "Pending", "Failed", false},
			sent{r.story("41"), newReference(), "Pending", "Success", false},
			sent{r.story("46"), newReference(), "Pending", "Success", false},
			sent{r.story("47"), newReference(), "Pending", "Success", false},
			sent{r.story("49"), newReference(), "Pending", "Success", false},
			sent{r.story("50"), newReference(), "Pending", "Success", false},
		)
	}
	// Of a transfer to a wallet nobody is notified, so that a success is never
	// asked about again.
	all = append(all, sent{toBank.story("44"), newReference(), "Success", "Success", true})
	for _, one := range all {
		s.sends(t, one.remit, one.reference, one.first, "X-Callback-URL", inbox)
	}
	refused := toWallet.to("08996647679")
	reference := newReference()
	refusedThere.want(t, "refused", s.ask(t, refused.path, refused.body(reference), "X-Callback-URL", inbox), reference, "phone")
	all = append(all, sent{refused, reference, "", "Failed", false})
	for _, one := range all {
		stands := s.stood(t, one.remit, one.reference, "", one.ends, heardWithin)
		told := p.arrived(t, "transfer.status_update", one.reference)
		then := stands
		then.ReversedAt = "" // that came after it
		one.isCallback(t, told.Body, "transfer.status_update", one.reference, then)
		if !told.Verified || told.By["mode"] != "test" || told.By["merchant_id"] != s.merchant {
			t.Errorf("%+v", told)
		}
		if one.reversed {
			back := p.arrived(t, "transfer.reversed", one.reference)
			stands = s.stands(t, one.remit, one.reference, "")
			if one.isCallback(t, back.Body, "transfer.reversed", one.reference, stands); stands.ReversedAt == "" {
				t.Errorf("taken back: %+v", stands)
			}
		}
	}
	var inboxed []arrival
	p.door(t, "/inbox.json", nil, &inboxed)
	events := map[string]map[string]bool{}
	for _, a := range inboxed {
		if events[a.Reference+a.Event] == nil {
			events[a.Reference+a.Event] = map[string]bool{}
		}
		if events[a.Reference+a.Event][a.WebhookID] = true; len(events[a.Reference+a.Event]) > 1 {
			t.Errorf("%s of %s was told as %v", a.Event, a.Reference, events[a.Reference+a.Event])
		}
	}
	p.listed(t, "reversed", s.merchant)
}

// checkPublicCases plays DANA's public test cases through the API. Those about
// signatures, currencies and missing numbers no caller of ours can cause.
func checkPublicCases(t *testing.T, p *program) {
	s := p.shop(large, "live")
	type outcome struct {
		refusal
		names []string
		first string // the status of an answer
		ends  string
	}
	done := outcome{refusal{}, nil, "Success", "Success"}
	type test struct {
		remit
		inquired, sent outcome
	}
	inquiredNo := func(r refusal, names ...string) outcome { return outcome{refusal: r, names: names} }
	tests := map[string]test{
		"the ordinary phone":         {toWallet.to("0811742234"), done, done},
		"4033705 frozen":             {toWallet.to("08123456667"), inquiredNo(nobodyThere, "phone"), inquiredNo(nobodyThere, "phone")},
		"4033705 nobody there":       {toWallet.to("08152768647"), inquiredNo(nobodyThere, "phone"), inquiredNo(nobodyThere, "phone")},
		"4033702 more than it takes": {toWallet.newRemit().of(20_000_002), inquiredNo(wrongInput, "amount"), inquiredNo(wrongInput, "amount")},
		"a timeout":                  {toWallet.to("08551005454"), inquiredNo(noAnswer), inquiredNo(notNow)},
		"4033805 at the transfer":    {toWallet.to("08996647679"), done, inquiredNo(refusedThere, "phone")},
		"5003801 and done":           {toWallet.to("08551008794"), done, outcome{first: "Pending", ends: "Success"}},
		"5003800 and not done":       {toWallet.to("08121111111"), done, outcome{first: "Pending"}},
		"4033814 a trillion":         {toWallet.newRemit().of(1_000_000_000_000), inquiredNo(wrongInput, "amount"), inquiredNo(wrongInput, "amount")},
		"the ordinary account":       {toBank.to("2460888509"), done, done},
		"4034218":                    {toBank.to("81298055132"), inquiredNo(nobodyThere, "account_no"), inquiredNo(nobodyThere, "account_no")},
		"4044211":                    {toBank.to("815919191"), inquiredNo(nobodyThere, "account_no"), inquiredNo(nobodyThere, "account_no")},
		"4044208":                    {toBank.to("855100800"), inquiredNo(notNow), inquiredNo(notNow)},
		"4034303 at the transfer":    {toBank.to("82298055100"), done, inquiredNo(refusedElse)},
		"5004300 and not done":       {toBank.to("8121111111"), done, outcome{first: "Pending"}},
		"5004301 and done":           {toBank.to("8551008794"), done, outcome{first: "Pending", ends: "Success"}},
		"4034318 at the transfer":    {toBank.to("81398055100"), done, inquiredNo(refusedThere, "account_no")},
		"4034214 fifty billion":      {toBank.newRemit().of(50_000_000_000), inquiredNo(asked), inquiredNo(asked)},
	}
	inquiries := map[string]string{toWallet.path: "/wallet1/inquiry", toBank.path: "/transfer/inquiry"}
	t.Run("all", func(t *testing.T) {
		for name, c := range tests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := s.ask(t, inquiries[c.path], c.body(""))
				if c.inquired.code == "" {
					if !a.Success {
						t.Errorf("inquired: %s", a)
					}
				} else {
					c.inquired.want(t, "inquired", a, "", c.inquired.names...)
				}
				reference := newReference()
				if c.sent.code != "" {
					a := s.ask(t, c.path, c.body(reference))
					c.sent.want(t, "sent", a, reference, c.sent.names...)
					if name == "a timeout" && a.Message != "The provider could not tell who the receiver is. Nothing was sent." {
						t.Errorf("a timeout: %s", a)
					}
					c.wantMoved(t, p, 0)
					known := s.ask(t, "/wallet1/transfer/status", fields{"external_id": reference})
					if refused := c.sent.sent == fault.SentRefused; refused != known.Success || refused && known.remitted().Status != "Failed" {
						t.Errorf("its status: %s", known)
					}
					return
				}
				s.sends(t, c.remit, reference, c.sent.first)
				if c.sent.ends == "" {
					c.wantMoved(t, p, 0)
					s.stood(t, c.remit, reference, "", c.sent.first, 0)
					return
				}
				c.wantMoved(t, p, 1)
				s.stood(t, c.remit, reference, "", c.sent.ends, heardWithin)
			})
		}
	})
	p.listed(t, "our_account", "wallet1", s.merchant)
}
