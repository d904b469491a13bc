package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// each plays every fault on every request that some work makes. Work gets the account
// with the fault ordered, and judges what came of it.
func (tr *trial) each(a *account, requests int, work func(f fault, n int, where string)) {
	if requests == 0 {
		tr.Skip("nothing is asked of an upstream over HTTP")
	}
	for n := 1; n <= requests; n++ {
		for _, f := range faults {
			work(f, n, fmt.Sprintf("%s, request %d of %d", f.name, n, requests))
		}
	}
	if a.followed() {
		tr.Error("the plugin followed a redirect to another host: credentials went with it")
	}
}

// checkFaults lets each request of a call go wrong and compares what the plugin says
// with what the upstream did, then and when it is looked up.
func checkFaults(tr *trial, e Example) {
	a := tr.connect("A", "test")
	requests, _ := tr.requestsOf(e, a)
	tr.each(a, requests, func(f fault, n int, where string) {
		o := tr.fresh(e, a) // a quote goes well
		a.arm(f, n)
		r := tr.send(o)
		if !a.calm() {
			return // what it asked for before is still good
		}
		tr.judge(o, r, f, false, where)
		tr.mustBeTrue(o)
	})
}

// judge compares an outcome under a fault with what the upstream has. Errored is
// whether the upstream has ended the call with an error of its own.
func (tr *trial) judge(o order, r sdk.Result, f fault, errored bool, where string) {
	made := len(tr.movements(o.call.Reference))
	switch {
	case r.Outcome == sdk.Refused:
		tr.Errorf("%s: a fault is no refusal: %s", where, shown(r))
	case r.Outcome == sdk.NotSent && made > 0:
		tr.Errorf("%s: said not to be sent, and the upstream has %d: %s", where, made, shown(r))
	case accepted(r.Outcome) && made != 1 && !o.example.PayerFirst:
		tr.Errorf("%s: accepted, and the upstream has %d: %s", where, made, shown(r))
	case accepted(r.Outcome) && r.ProviderReference == "" && !tr.isOrder(o):
		tr.Errorf("%s: accepted without a provider reference: %s", where, shown(r))
	case made > 1:
		tr.Errorf("%s: the upstream has %d", where, made)
	case r.Outcome == sdk.Unknown && r.Errored != errored:
		tr.Errorf("%s: the upstream ended the call with an error of its own is %v, the plugin says %v: %s", where, errored, r.Errored, shown(r))
	case !accepted(r.Outcome) && !f.blames(r.Blame):
		tr.Errorf("%s: blame %d is not whose fault it is: %s", where, r.Blame, shown(r))
	}
}

// checkOwnErrors has the simulator end a call with an error in its own format.
func checkOwnErrors(tr *trial, e Example) {
	if e.PayerFirst {
		tr.Skip("the upstream knows nothing of it before the payer acts")
	}
	for _, f := range []string{"error_500", "error_500_after"} {
		a := tr.connect("A", "test")
		if requests, _ := tr.requestsOf(e, a); requests == 0 {
			tr.Skip("nothing is asked of an upstream over HTTP")
		}
		o := tr.orderFor(e, a)
		tr.unless(tr.suite.simulator.order(tr.ctx, "faults", map[string]any{"fault": f, "count": 1}, nil), "make errors")
		r := tr.send(o)
		tr.judge(o, r, fault{}, tr.suite.examples.OwnErrors, f)
		tr.mustBeTrue(o)
	}
}

// mustBeTrue compares a lookup with what the upstream has.
func (tr *trial) mustBeTrue(o order) {
	before := len(tr.movements(o.call.Reference))
	f := tr.find(o, "")
	after := len(tr.movements(o.call.Reference))
	switch {
	case o.example.PayerFirst:
		tr.mustBeFound(o, f)
	case f.Status == sdk.StatusNotFound && before == 0:
	case f.Status != sdk.StatusNotFound && after > 0:
		tr.mustExist(o)
		tr.mustBeFound(o, f)
	default:
		tr.Errorf("status %v, while the upstream has %d: %+v", f.Status, after, f)
	}
}

// checkLookupFaults: whatever goes wrong with a lookup of what exists, it says nothing
// that releases or ends money.
func checkLookupFaults(tr *trial, e Example) {
	a := tr.connect("A", "test")
	a.renew()
	o := tr.orderFor(e, a)
	tr.lookupsUnderFaults(a, o, tr.sendAccepted(o).ProviderReference)
	tr.mustExist(o)
}

// lookupsUnderFaults looks a movement up by both its names while each request goes wrong.
func (tr *trial) lookupsUnderFaults(a *account, o order, reference string) {
	for _, known := range slices.Compact([]string{"", reference}) {
		a.renew()
		o.call.Connection = a.Connection
		before := a.requests()
		clean := tr.find(o, known)
		requests := a.requests() - before
		tr.each(a, requests, func(f fault, n int, where string) {
			a.renew()
			o.call.Connection = a.Connection
			a.arm(f, n)
			got := tr.find(o, known)
			switch {
			case !a.calm():
			case got.Status == sdk.StatusUnknown && f.blames(got.Blame):
			case got.Status == sdk.StatusUnknown:
				tr.Errorf("%s: blame %d is not whose fault it is: %+v", where, got.Blame, got)
			case got.Status == clean.Status && got.Amount == clean.Amount && got.Reference == clean.Reference:
			default:
				tr.Errorf("%s: the lookup has status %v of a movement whose status is %v: %+v", where, got.Status, clean.Status, got)
			}
		})
	}
}

// checkEndFaults: an end is told only where the movement has ended.
func checkEndFaults(tr *trial, e Example) {
	a := tr.connect("A", "test")
	_, end, _ := tr.begin(e, a)
	before := a.requests()
	tr.sendAccepted(end)
	tr.each(a, a.requests()-before, func(f fault, n int, where string) {
		begun, end, first := tr.begin(e, a)
		a.arm(f, n)
		r := tr.send(end)
		if !a.calm() {
			return
		}
		now := tr.find(begun, first.ProviderReference)
		switch {
		case r.Outcome == sdk.Refused:
			tr.Errorf("%s: a fault is no refusal: %s", where, shown(r))
		case accepted(r.Outcome) && e.Leaves != 0 && now.Status != sdk.Status(e.Leaves):
			tr.Errorf("%s: said to have ended, and its status is %v", where, now.Status)
		case r.Outcome == sdk.NotSent && now.Status != sdk.StatusPending && sdk.Status(e.Leaves) != sdk.StatusPending:
			tr.Errorf("%s: said not to be sent, and its status is %v", where, now.Status)
		case !accepted(r.Outcome) && !f.blames(r.Blame):
			tr.Errorf("%s: blame %d is not whose fault it is: %s", where, r.Blame, shown(r))
		}
	})
}

// checkQueryFaults: what could not be asked is answered with no data, and is nobody's
// mistake.
func checkQueryFaults(tr *trial, e Example) {
	a := tr.connect("A", "test")
	o := tr.fresh(e, a)
	before := a.requests()
	tr.sendAccepted(o)
	requests := a.requests() - before
	tr.each(a, requests, func(f fault, n int, where string) {
		o := tr.fresh(e, a)
		a.arm(f, n)
		before := a.requests()
		switch r := tr.send(o); {
		case !a.calm():
		case r.Outcome == sdk.Refused:
			tr.Errorf("%s: a fault is no refusal: %s", where, shown(r))
		case r.Outcome == sdk.Done && a.requests()-before <= requests:
			tr.Errorf("%s: answered all the same: %s", where, shown(r))
		}
	})
}

// checkHang: when the time is over the plugin itself says so, and says that it
// does not know what became of the call.
func checkHang(tr *trial, e Example) {
	a := tr.connect("A", "test")
	_, moving := tr.requestsOf(e, a)
	if moving == 0 {
		tr.Skip("nothing is asked of an upstream over HTTP")
	}
	// What a busy machine could have done counts only if it happens again with more time.
	if why := tr.hung(e, a, moving, hurry); why != "" {
		if why = tr.hung(e, a, moving, 3*hurry); why != "" {
			tr.Error(why)
		}
	}
}

// hung lets a request of a call have no answer, and says what is wrong with what the
// plugin makes of it.
func (tr *trial) hung(e Example, a *account, n int, within time.Duration) string {
	o := tr.fresh(e, a)
	a.arm(hanging, n)
	ctx, cancel := context.WithTimeout(tr.Context(), within)
	defer cancel()
	r, err := tr.plugin.Call(ctx, o.call)
	a.calm()
	switch {
	case err != nil:
		return fmt.Sprintf("the handler outlived its context: %v", err)
	case r.Outcome != sdk.Unknown || r.Blame != sdk.BlameUpstream || r.Errored:
		return fmt.Sprintf("got %s, want unknown with blame for the upstream", shown(r))
	}
	tr.mustBeTrue(o)
	return ""
}

// checkCrash kills the process in a call. The call must end by that alone, and
// a new process must know what became of it, since the old one kept nothing.
func checkCrash(tr *trial, e Example) {
	a := tr.connect("A", "test")
	_, moving := tr.requestsOf(e, a)
	if moving == 0 {
		tr.Skip("nothing is asked of an upstream over HTTP")
	}
	tr.own()
	o := tr.fresh(e, a)
	met := a.arm(hanging, moving)
	ended := make(chan error, 1)
	old := tr.plugin.process
	go func() {
		_, err := old.Call(tr.Context(), o.call)
		ended <- err
	}()
	select {
	case <-met:
	case <-time.After(patience):
		tr.Fatal("waited in vain: the call reaches the upstream")
	}
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	if err := old.kill(ctx); err != nil {
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
	a.calm()
	tr.own()
	tr.mustBeTrue(o)
}

// checkEcho has the upstream quote the account's credentials in an error.
func checkEcho(tr *trial, e Example) {
	a := tr.connect("A", "test")
	quoted := strings.Join(tr.suite.secrets.plain(a.Credentials), " ")
	if quoted == "" {
		tr.Skip("the connection has no credential that its schema has as writeOnly, or whose name says that it is secret")
	}
	tr.own() // so that its standard error comes to an end
	requests, _ := tr.requestsOf(e, a)
	text := "your key " + quoted
	body, err := json.Marshal(map[string]any{
		"message": text, "error": text, "error_message": text, "error_code": text, "responseMessage": text, "responseCode": "4000000",
		"errors": []any{map[string]any{"field": []string{"amount"}, "messages": []string{text}}}, "data": map[string]any{"message": text, "rc": text},
	})
	if err != nil {
		tr.Fatal(err)
	}
	for _, status := range []int{http.StatusBadRequest, http.StatusInternalServerError} {
		for n := 1; n <= requests; n++ {
			o := tr.fresh(e, a)
			a.arm(fault{play: says(status, "application/json", string(body))}, n)
			tr.send(o) // each reply is searched
			a.calm()
			o.call.Connection = a.Connection
			a.arm(fault{play: says(status, "application/json", string(body))}, 0)
			if !tr.resubmits() || status >= http.StatusInternalServerError {
				tr.find(o, "")
			}
			a.calm()
		}
	}
	tr.plugin.end()
	for _, leak := range tr.suite.Leaks() {
		tr.Error(leak)
	}
}
