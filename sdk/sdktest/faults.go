package sdktest

import (
	"context"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// checkHang: when the time is over the plugin itself says so, and says that it
// does not know what became of the call.
func checkHang(tr *trial, e Example) {
	tr.upstream.Hang()
	o := tr.order(e)
	ctx, cancel := context.WithTimeout(tr.Context(), hurry)
	defer cancel()
	r, err := tr.plugin.Call(ctx, o.call)
	switch {
	case err != nil:
		tr.Errorf("the handler outlived its context: %v", err)
	case r.Outcome != sdk.Unknown || r.Blame != sdk.BlameUpstream || r.Errored:
		tr.Errorf("got %+v, want unknown with blame for the upstream", r)
	}
}

// checkFault lets a call go wrong and compares what the plugin says with what
// the upstream did, then and when it is looked up.
func checkFault(tr *trial, e Example, fault Fault) {
	tr.upstream.Fail(fault)
	o := tr.order(e)
	r := tr.send(o)
	exists := len(tr.upstream.Movements(o.call.Reference)) > 0
	if after := fault == CutAfter || fault == GarbageAfter; exists != after && !accepted(r.Outcome) {
		tr.Fatalf("the upstream's fault did not come about: it did what was asked is %v", exists)
	}
	switch r.Outcome {
	case sdk.Unknown:
		if own := fault == ErrorBefore && tr.suite.OwnErrors; r.Errored != own {
			tr.Errorf("the upstream ended the call with an error of its own is %v, the plugin says %v: %+v", own, r.Errored, r)
		}
	case sdk.Pending, sdk.Done: // a lookup of its own showed the plugin so
		tr.mustExist(o)
	case sdk.NotSent:
		tr.mustNotExist(o)
	case sdk.Refused:
		tr.Errorf("a fault is no refusal: %+v", r)
	}
	if !accepted(r.Outcome) && r.Blame != sdk.BlameUpstream {
		tr.Errorf("blame %d for an upstream's fault: %+v", r.Blame, r)
	}
	tr.mustBeTrue(o)
}

// mustBeTrue compares a lookup with what the upstream has.
func (tr *trial) mustBeTrue(o order) {
	tr.Helper()
	before := len(tr.upstream.Movements(o.call.Reference))
	f := tr.find(o, "")
	after := len(tr.upstream.Movements(o.call.Reference))
	switch {
	case f.Status == sdk.StatusNotFound && before == 0:
	case f.Status != sdk.StatusNotFound && after > 0:
		tr.mustExist(o)
		tr.mustBeFound(o, f)
	default:
		tr.Errorf("status %d, while the upstream has %d: %+v", f.Status, after, f)
	}
}

// checkCrash kills the process in a call. The call must end by that alone, and
// a new process must know what became of it, since the old one kept nothing.
func checkCrash(tr *trial, e Example) {
	met := tr.upstream.Hang()
	o := tr.order(e)
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := tr.plugin.Call(tr.Context(), o.call)
		ended <- err
	}()
	select {
	case <-met:
	case <-ctx.Done():
		tr.Fatal("waited in vain: the call reaches the upstream")
	}
	if err := tr.plugin.kill(ctx); err != nil {
		tr.Fatal(err)
	}
	select {
	case err := <-ended:
		if err == nil {
			tr.Error("the call was answered by a dead process")
		}
	case <-time.After(patience):
		tr.Fatal("the call still waits for a dead process")
	}
	tr.plugin = startProcess(tr.T, tr.suite.Command)
	tr.mustBeTrue(o)
}
