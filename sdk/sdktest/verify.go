package sdktest

import (
	"context"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// checkVerify asks for credentials that work, and for some that no longer do.
// Nothing tells them apart but what is in them.
func checkVerify(tr *trial) {
	if !tr.manifest.Verifies {
		tr.Skip("this plugin does not verify connections")
	}
	first := tr.upstream.Connect("A", "test")
	tr.mustVerify("an account", first, true)
	rotator, ok := tr.upstream.(Rotator)
	if !ok {
		return
	}
	second := rotator.Rotate("A", "test")
	tr.mustVerify("old credentials", first, false)
	tr.mustVerify("new credentials", second, true)
	tr.mustVerify("old credentials after the new", first, false)
}

func (tr *trial) mustVerify(what string, c sdk.Connection, usable bool) {
	tr.Helper()
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	c.Version = 0
	r, err := tr.plugin.Verify(ctx, c)
	refused := r.Outcome == sdk.Refused || r.Blame == sdk.BlameAccount
	if err != nil || usable != (r.Outcome == sdk.Done) || usable == refused {
		tr.Errorf("verify %s: got %+v, %v, want usable %v", what, r, err, usable)
	}
}
