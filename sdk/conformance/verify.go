package conformance

import (
	"context"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// checkVerify asks for credentials that work, and for some that no longer do.
// Nothing tells them apart but what is in them, and none is kept.
func checkVerify(tr *trial) {
	tr.mustBeVerified()
	first := tr.account("R", tr.name+"-R", "test", 1)
	tr.mustVerify("an account", tr.account("R", tr.name+"-R", "test", 2), true)
	tr.mustVerify("another account", first, true)
	for _, e := range tr.acceptedExamples() {
		o := tr.orderFor(e, first)
		tr.sendAccepted(o)
		tr.mustExist(o) // with the credentials that the call brings, not those that were verified
	}
	second := tr.rotate(first)
	tr.mustVerify("old credentials", first, false)
	tr.mustVerify("new credentials", second, true)
	tr.mustVerify("old credentials after the new", first, false)
}

func (tr *trial) mustBeVerified() {
	if !tr.manifest.Verifies {
		tr.Skip("this plugin does not verify connections")
	}
}

func (tr *trial) verify(a *account) sdk.Result {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	c := a.Connection
	c.Version = 0
	r, err := tr.plugin.Verify(ctx, c)
	if err != nil {
		tr.Fatalf("the verification broke the transport: %v", err)
	}
	return r
}

func (tr *trial) mustVerify(what string, a *account, usable bool) {
	r := tr.verify(a)
	refused := r.Outcome == sdk.Refused || r.Blame == sdk.BlameAccount
	if usable != (r.Outcome == sdk.Done) || usable == refused {
		tr.Errorf("verify %s: got %+v, want usable %v", what, r, usable)
	}
}

// checkVerifyFaults: what could not be asked is neither.
func checkVerifyFaults(tr *trial) {
	tr.mustBeVerified()
	a := tr.connect("A", "test")
	tr.mustVerify("an account", a, true)
	requests := a.requests()
	tr.each(a, requests, func(f fault, n int, where string) {
		a.arm(f, n)
		before := a.requests()
		switch r := tr.verify(a); {
		case !a.calm():
		case r.Outcome == sdk.Done && a.requests()-before <= requests:
			tr.Errorf("%s: the credentials are said to be good: %+v", where, r)
		case !f.account && (r.Outcome == sdk.Refused || r.Blame == sdk.BlameAccount):
			tr.Errorf("%s: the credentials are said to be bad: %+v", where, r)
		}
	})
}
