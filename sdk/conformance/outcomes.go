package conformance

import (
	"sync"
	"time"

	"github.com/seed-f006e74d/gerbang/sdk"
)

// checkManifest: what the process serves is what was approved.
func checkManifest(tr *trial) {
	for range 2 {
		served, err := tr.plugin.Describe(tr.Context())
		if err != nil {
			tr.Fatal(err)
		}
		if served.Digest() != tr.manifest.Digest() {
			tr.Errorf("the plugin serves a manifest with digest %s, given is %s", served.Digest(), tr.manifest.Digest())
		}
	}
}

func checkUnknownOperation(tr *trial) {
	a := tr.connect("A", "test")
	r := tr.send(order{call: sdk.Call{Operation: "/no/such/operation", Reference: newReference(), Connection: a.Connection}})
	if r.Outcome != sdk.NotSent {
		tr.Errorf("got %+v, want not sent", r)
	}
	if n := a.requests(); n != 0 {
		tr.Errorf("%d requests reached the upstream", n)
	}
}

// checkUnknownReference: "not found" releases money, so it must be said
// where it is true, and only then.
func checkUnknownReference(tr *trial) {
	for _, e := range tr.acceptedExamples() {
		if tr.resubmits() {
			tr.mustBeTrue(tr.order(e)) // asking may have made it
			continue
		}
		if f := tr.find(tr.order(e), ""); f.Status != sdk.StatusNotFound {
			tr.Errorf("%s: a reference that nobody used has status %v, want not found: %+v", e.Name, f.Status, f)
		}
	}
}

// checkAccepted: what was accepted exists once, as ordered, and is found.
func checkAccepted(tr *trial, e Example) {
	o := tr.order(e)
	r := tr.sendAccepted(o)
	if r.ProviderReference == "" && !tr.isOrder(o) {
		tr.Error("an accepted call has no provider reference")
	}
	tr.mustFit(e, r.Data)
	tr.mustExist(o)
	for _, known := range []string{"", r.ProviderReference} {
		f := tr.find(o, known)
		tr.mustBeFound(o, f)
		if f.Status == sdk.StatusDone && payable(r) {
			tr.Errorf("nobody has paid, and a lookup says that it is done: %+v", f)
		}
		if f.ProviderReference != r.ProviderReference && !e.PayerFirst {
			tr.Errorf("found provider reference %q, the call answered %q", f.ProviderReference, r.ProviderReference)
		}
	}
	tr.mustExist(o) // asking made no second one
}

// checkTwice: a reference names one movement, however often it is called.
func checkTwice(tr *trial, e Example) {
	o := tr.order(e)
	first := tr.sendAccepted(o)
	second := tr.send(o)
	if accepted(second.Outcome) && second.ProviderReference != first.ProviderReference && !e.PayerFirst {
		tr.Errorf("the second call answers provider reference %q, the first %q", second.ProviderReference, first.ProviderReference)
	}
	if second.Outcome == sdk.NotSent || second.Outcome == sdk.Refused {
		tr.Errorf("the second call says that nothing happened: %s", shown(second))
	}
	tr.mustExist(o)
}

// checkSendBy: what comes too late is not sent, and nothing reaches the
// upstream. That holds for a lookup, too, where it is the same request again.
func checkSendBy(tr *trial, e Example) {
	o := tr.order(e)
	o.call.SendBy = time.Now().Add(-time.Second)
	before := o.account.requests()
	if r := tr.send(o); r.Outcome != sdk.NotSent {
		tr.Errorf("got %s, want not sent", shown(r))
	}
	if tr.resubmits() {
		if f := tr.find(o, ""); f.Status != sdk.StatusUnknown {
			tr.Errorf("status %v after send_by: %+v", f.Status, f)
		}
	}
	if n := o.account.requests() - before; n != 0 {
		tr.Errorf("%d requests reached the upstream after send_by", n)
	}
	tr.mustNotExist(o)
}

// requestsOf makes the call of an example for an account that the plugin begins anew
// with. It tells how many requests that took, and which of them moved the money; 0
// where none did.
func (tr *trial) requestsOf(e Example, a *account) (all, moving int) {
	o := tr.fresh(e, a)
	before := a.requests()
	a.watch(func() {
		made, err := tr.suite.simulator.movements(tr.ctx, o.call.Reference)
		if moving == 0 && err == nil && len(made) > 0 {
			moving = a.requests() - before
		}
	})
	tr.sendAccepted(o)
	a.calm()
	all = a.requests() - before
	if moving == 0 && e.PayerFirst {
		moving = all // nobody can see which it was
	}
	return all, moving
}

// checkLate: a preparation, such as a token or a lookup of its own, that takes until
// after send_by.
func checkLate(tr *trial, e Example) {
	a := tr.connect("A", "test")
	_, moving := tr.requestsOf(e, a)
	if moving < 2 {
		tr.Skip("the plugin sends at once: nothing comes before the request that moves money")
	}
	for n := 1; n < moving; n++ {
		// A busy machine may take so long that the call arrives too late, which proves nothing.
		for within := 700 * time.Millisecond; within < 6*time.Second && !tr.late(e, a, n, within); within *= 2 {
			continue
		}
	}
}

// late holds the answer to a request of a call until after send_by. It reports whether
// the call came so far.
func (tr *trial) late(e Example, a *account, n int, within time.Duration) bool {
	o := tr.fresh(e, a)
	o.call.SendBy = time.Now().Add(within)
	a.delay(o.call.SendBy.Add(100*time.Millisecond), n)
	r := tr.send(o)
	if !a.calm() {
		return false
	}
	if accepted(r.Outcome) || r.Outcome == sdk.Refused {
		tr.Errorf("request %d took until after send_by, and the plugin went on: %s", n, shown(r))
	}
	tr.mustNotExist(o)
	return true
}

// checkDeclined: what was refused, or surely not sent, left nothing behind, and
// stays so.
func checkDeclined(tr *trial, e Example) {
	o := tr.order(e)
	for range 2 {
		r := tr.send(o)
		if r.Outcome != e.want() {
			tr.Fatalf("outcome %v, want %v: %s", r.Outcome, e.want(), shown(r))
		}
		if r.Outcome == sdk.Refused && (r.Refusal.Code != e.Code || r.Refusal.Message == "") {
			tr.Errorf("refused with %+v, want code %s and a message", r.Refusal, e.Code)
		}
		tr.mustNotExist(o)
	}
	if o.noQuote != nil || tr.resubmits() && e.want() == sdk.NotSent {
		return // nobody asks for it, and asking would make it
	}
	if f := tr.find(o, ""); f.Status != sdk.StatusNotFound && f.Status != sdk.StatusFailed {
		tr.Errorf("status %v after %v: %+v", f.Status, e.want(), f)
	}
}

// checkQuery: a query answers what was declared, each merchant from its own account.
func checkQuery(tr *trial, e Example) {
	o := tr.order(e)
	before := o.account.requests()
	r := tr.send(o)
	asked := o.account.requests() - before
	if r.Outcome != e.want() || r.Outcome == sdk.Refused && r.Refusal.Code != e.Code {
		tr.Fatalf("got %s, want outcome %v %s", shown(r), e.want(), e.Code)
	}
	tr.mustNotExist(o)
	if r.Outcome != sdk.Done {
		return
	}
	tr.mustFit(e, r.Data)
	other := tr.orderFor(e, tr.connect("B", "test"))
	before = other.account.requests()
	tr.sendAccepted(other)
	if op, _ := tr.manifest.Operation(e.Operation); asked > 0 && other.account.requests() == before && op.Cache == 0 {
		tr.Errorf("the upstream was asked for one merchant, and another was answered without asking")
	}
}

// begin makes the movement that an example ends, and the call that ends it.
func (tr *trial) begin(e Example, a *account) (begun, end order, first sdk.Result) {
	begun = tr.orderFor(tr.suite.examples.example(e.Ends), a)
	first = tr.sendAccepted(begun)
	end = tr.orderFor(e, a)
	end.call.Reference, end.call.ProviderReference, end.call.Amount = begun.call.Reference, first.ProviderReference, begun.call.Amount
	return begun, end, first
}

// checkEnd: an operation that ends a movement does so, and says the same again. Another
// movement goes on.
func checkEnd(tr *trial, e Example) {
	a := tr.connect("A", "test")
	begun, end, first := tr.begin(e, a)
	bystander, _, other := tr.begin(e, a)
	for range 2 {
		r := tr.sendAccepted(end)
		tr.mustFit(e, r.Data)
	}
	if f := tr.find(begun, first.ProviderReference); e.Leaves != 0 && f.Status != sdk.Status(e.Leaves) {
		tr.Errorf("status %v afterwards, want %v: %+v", f.Status, sdk.Status(e.Leaves), f)
	}
	if f := tr.find(bystander, other.ProviderReference); f.Status != sdk.StatusPending {
		tr.Errorf("another movement was ended, too: %+v", f)
	}
}

// checkEndPaid: an end must not say that a paid payment has ended unpaid.
func checkEndPaid(tr *trial, e Example) {
	begun, end, first := tr.begin(e, tr.open("A", "test"))
	if _, err := tr.pay(first, 0); err != nil {
		tr.unless(err, "let a payer pay this example")
	}
	if r := tr.send(end); accepted(r.Outcome) {
		tr.Errorf("a paid payment was ended: %s", shown(r))
	}
	if f := tr.find(begun, first.ProviderReference); f.Status != sdk.StatusDone {
		tr.Errorf("status %v of a paid payment: %+v", f.Status, f)
	}
}

// checkAccounts uses four accounts at once: what is done with one's credentials
// must be what was ordered for that one.
func checkAccounts(tr *trial) {
	const each = 4
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	var parts []func()
	for _, merchant := range []string{"A", "B"} {
		for _, mode := range []string{"live", "test"} {
			for i := range each {
				o := tr.orderFor(examples[i%len(examples)], tr.connect(merchant, mode))
				parts = append(parts, func() { tr.inItsAccount(o) })
			}
		}
	}
	tr.together(parts...)
}

// together runs parts of a case at once, and waits.
func (tr *trial) together(parts ...func()) {
	var running sync.WaitGroup
	for _, part := range parts {
		running.Go(func() { tr.guard(part) })
	}
	running.Wait()
}

func (tr *trial) inItsAccount(o order) {
	tr.sendAccepted(o)
	tr.mustExist(o)
	if tr.resubmits() {
		return // asked from another account it would be made there
	}
	for _, a := range []*account{tr.connect("A", "live"), tr.connect("B", "test")} {
		elsewhere := o
		elsewhere.call.Connection = a.Connection
		f := tr.find(elsewhere, "")
		if own := a == o.account; (f.Status != sdk.StatusNotFound) != own {
			tr.Errorf("account %s/%s finds %+v of it", a.MerchantID, a.Mode, f)
		}
	}
}
