package sdktest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/sdk"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
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
	r := tr.send(order{call: sdk.Call{
		Operation: "/no/such/operation", Reference: uuid.NewString(), Connection: tr.upstream.Connect("A", "test"),
	}})
	if r.Outcome != sdk.NotSent {
		tr.Errorf("got %+v, want not sent", r)
	}
	if n := tr.upstream.Requests(); n != 0 {
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
			tr.Errorf("%s: a reference that nobody used has status %d, want not found: %+v", e.Name, f.Status, f)
		}
	}
}

// acceptedExamples are those that the upstream knows of once they are accepted.
func (tr *trial) acceptedExamples() (examples []Example) {
	for _, e := range tr.suite.Examples {
		if op, _ := tr.manifest.Operation(e.Operation); op.Money() && op.Kind != manifest.Collection && accepted(e.Want) {
			examples = append(examples, e)
		}
	}
	return examples
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
		if f.ProviderReference != r.ProviderReference {
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
	if accepted(second.Outcome) && second.ProviderReference != first.ProviderReference {
		tr.Errorf("the second call answers provider reference %q, the first %q", second.ProviderReference, first.ProviderReference)
	}
	if second.Outcome == sdk.NotSent || second.Outcome == sdk.Refused {
		tr.Errorf("the second call says that nothing happened: %+v", second)
	}
	tr.mustExist(o)
}

// checkSendBy: what comes too late is not sent, and nothing reaches the
// upstream. That holds for a lookup, too, where it is the same request again.
func checkSendBy(tr *trial, e Example) {
	o := tr.order(e)
	o.call.SendBy = time.Now().Add(-time.Second)
	before := tr.upstream.Requests()
	if r := tr.send(o); r.Outcome != sdk.NotSent {
		tr.Errorf("got %+v, want not sent", r)
	}
	if tr.resubmits() {
		if f := tr.find(o, ""); f.Status != sdk.StatusUnknown {
			tr.Errorf("status %d after send_by: %+v", f.Status, f)
		}
	}
	if n := tr.upstream.Requests() - before; n != 0 {
		tr.Errorf("%d requests reached the upstream after send_by", n)
	}
	tr.mustNotExist(o)
}

// checkDeclined: what was refused, or surely not sent, left nothing behind, and
// stays so.
func checkDeclined(tr *trial, e Example) {
	o := tr.order(e)
	for range 2 {
		r := tr.send(o)
		if r.Outcome != e.Want {
			tr.Fatalf("outcome %d, want %d: %+v", r.Outcome, e.Want, r)
		}
		if r.Outcome == sdk.Refused && (r.Refusal.Code != e.Code || r.Refusal.Message == "") {
			tr.Errorf("refused with %+v, want code %s and a message", r.Refusal, e.Code)
		}
		tr.mustNotExist(o)
	}
	if o.noQuote != nil || tr.resubmits() && e.Want == sdk.NotSent {
		return // nobody asks for it, and asking would make it
	}
	if f := tr.find(o, ""); f.Status != sdk.StatusNotFound && f.Status != sdk.StatusFailed {
		tr.Errorf("status %d after %d: %+v", f.Status, e.Want, f)
	}
}

func checkQuery(tr *trial, e Example) {
	o := tr.order(e)
	r := tr.send(o)
	if r.Outcome != e.Want || r.Outcome == sdk.Refused && r.Refusal.Code != e.Code {
		tr.Fatalf("got %+v, want outcome %d %s", r, e.Want, e.Code)
	}
	if r.Outcome == sdk.Done {
		tr.mustFit(e, r.Data)
	}
	tr.mustNotExist(o)
}

// checkEnd: an operation that ends a movement does so, and says the same again.
func checkEnd(tr *trial, e Example) {
	begun := tr.order(tr.suite.example(e.Ends))
	reference := tr.sendAccepted(begun).ProviderReference
	end := tr.orderFor(e, begun.call.Connection)
	end.call.Reference, end.call.ProviderReference, end.call.Amount = begun.call.Reference, reference, begun.call.Amount
	for range 2 {
		r := tr.sendAccepted(end)
		tr.mustFit(e, r.Data)
	}
	if f := tr.find(begun, reference); e.Leaves != 0 && f.Status != e.Leaves {
		tr.Errorf("status %d afterwards, want %d: %+v", f.Status, e.Leaves, f)
	}
}

// checkAccounts uses four accounts at once: what is done with one's credentials
// must be what was ordered for that one.
func checkAccounts(tr *trial) {
	const each = 4
	var calls sync.WaitGroup
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider moves no money")
	}
	for _, merchant := range []string{"A", "B"} {
		for _, mode := range []string{"live", "test"} {
			for i := range each {
				o := tr.orderFor(examples[i%len(examples)], tr.upstream.Connect(merchant, mode))
				calls.Go(func() {
					if err := tr.inItsAccount(o); err != nil {
						tr.Errorf("%s/%s: %v", merchant, mode, err)
					}
				})
			}
		}
	}
	calls.Wait()
}

func (tr *trial) inItsAccount(o order) error {
	ctx, cancel := context.WithTimeout(tr.Context(), patience)
	defer cancel()
	r, err := tr.plugin.Call(ctx, o.call)
	if err != nil || r.Outcome != o.example.Want {
		return fmt.Errorf("%+v, %w", r, err)
	}
	tr.mustExist(o)
	if tr.resubmits() {
		return nil // asked from another account it would be made there
	}
	for _, c := range []sdk.Connection{tr.upstream.Connect("A", "live"), tr.upstream.Connect("B", "test")} {
		f, err := tr.plugin.Lookup(ctx, sdk.Lookup{
			Operation: o.call.Operation, Connection: c, Reference: o.call.Reference, Amount: o.call.Amount, Body: o.call.Body,
			SentAt: time.Now(),
		})
		own := c.MerchantID == o.call.Connection.MerchantID && c.Mode == o.call.Connection.Mode
		if err != nil || (f.Status != sdk.StatusNotFound) != own {
			return fmt.Errorf("account %s/%s finds %+v of it, %w", c.MerchantID, c.Mode, f, err)
		}
	}
	return nil
}

// checkRotation: new credentials are used from the first call that brings them.
func checkRotation(tr *trial) {
	rotator, ok := tr.upstream.(Rotator)
	if !ok {
		tr.Skip("this upstream's accounts can't get new credentials")
	}
	for _, e := range tr.acceptedExamples() {
		tr.sendAccepted(tr.order(e))
		fresh := tr.orderFor(e, rotator.Rotate("A", "test"))
		tr.sendAccepted(fresh)
		tr.mustExist(fresh)
	}
}
