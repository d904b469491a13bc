package conformance

import (
	"github.com/seed-f006e74d/gerbang/sdk"
)

// rotate gives an account with new credentials; the upstream refuses the old ones.
func (tr *trial) rotate(a *account) *account {
	tr.unless(tr.suite.simulator.order(tr.ctx, "revoke", map[string]string{"account": a.upstream}, nil), "revoke credentials")
	return tr.account("R", tr.name+"-R", a.Mode, a.Version+1)
}

// checkRotation: new credentials are used from the first call that brings them, and a
// call that is under way with older ones does not bring these back.
func checkRotation(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	for _, e := range examples {
		old, fresh := tr.account("R", tr.name+"-R", "test", 1), tr.account("R", tr.name+"-R", "test", 2)
		for _, a := range []*account{old, fresh, old, fresh} {
			o := tr.orderFor(e, a)
			tr.sendAccepted(o)
			tr.mustExist(o)
		}
	}
}

// checkRevoked: an account whose credentials the upstream no longer takes.
func checkRevoked(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	old := tr.account("R", tr.name+"-R", "test", 1)
	var made []order
	for _, e := range examples {
		o := tr.orderFor(e, old)
		tr.sendAccepted(o)
		made = append(made, o, tr.orderFor(e, old))
	}
	fresh := tr.rotate(old)
	fresh.Version += 100 // beyond those under which the plugin begins anew with the old ones
	for i, e := range examples {
		again, late := made[2*i], made[2*i+1]
		old.renew()
		again.call.Connection, late.call.Connection = old.Connection, old.Connection
		switch r := tr.send(late); {
		case r.Outcome == sdk.Refused:
			tr.Errorf("%s: credentials that the upstream refuses are no refusal of the payer: %s", e.Name, shown(r))
		case accepted(r.Outcome) || r.Blame != sdk.BlameAccount:
			tr.Errorf("%s: credentials that the upstream refuses: got %s, want not sent, or unknown, with blame for the account", e.Name, shown(r))
		}
		tr.mustNotExist(late)
		if f := tr.find(again, ""); f.Status != sdk.StatusUnknown {
			tr.Errorf("%s: a lookup with credentials that the upstream refuses has status %v: %+v", e.Name, f.Status, f)
		}
		o := tr.orderFor(e, fresh)
		tr.sendAccepted(o)
		tr.mustExist(o)
	}
}
