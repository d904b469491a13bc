package conformance

import (
	"context"
	"sync"
	"time"
)

// checkOthers: a merchant whose upstream hangs holds up nobody else.
func checkOthers(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	stuck := tr.connect("A", "test")
	held := tr.hold(examples[0], stuck, 4)
	ctx, cancel := context.WithTimeout(tr.Context(), patience/4)
	defer cancel()
	for _, a := range []*account{tr.connect("B", "test"), tr.connect("A", "live")} {
		o := tr.orderFor(examples[0], a)
		if r, err := tr.plugin.Call(ctx, o.call); err != nil || r.Outcome != examples[0].want() {
			tr.Errorf("%s/%s, while %s/%s hangs: %s, %v", a.MerchantID, a.Mode, stuck.MerchantID, stuck.Mode, shown(r), err)
		}
	}
	stuck.calm()
	held()
}

// hold makes calls that hang, and returns once the first has come to the upstream. What
// it returns ends them.
func (tr *trial) hold(e Example, a *account, count int) (end func()) {
	orders := make([]order, count)
	for i := range orders {
		orders[i] = tr.orderFor(e, a)
	}
	before := a.requests()
	met := a.arm(fault{play: hang}, 0)
	ctx, cancel := context.WithCancel(tr.Context())
	var calls sync.WaitGroup
	for _, o := range orders {
		calls.Go(func() { _, _ = tr.plugin.process.Call(ctx, o.call) }) // nobody waits for the answer
	}
	tr.at(func() { cancel(); calls.Wait() })
	select {
	case <-met:
	case <-time.After(patience):
		if err := tr.plugin.healthy(patience / 4); err != nil {
			tr.Fatalf("waited in vain: the call reaches the upstream; asked whether it is well, the process: %v", err)
		}
		tr.Fatal("waited in vain: the call reaches the upstream")
	}
	for begun := time.Now(); a.requests() < before+count && time.Since(begun) < time.Second; time.Sleep(5 * time.Millisecond) {
		continue // a plugin may let fewer through
	}
	return cancel
}

// checkHealth: the gateway asks whether the process is well, and is answered.
func checkHealth(tr *trial) {
	examples := tr.acceptedExamples()
	if len(examples) == 0 {
		tr.Skip("this provider's upstream knows of no movement before it is paid")
	}
	tr.own()
	end := tr.hold(examples[0], tr.connect("A", "test"), 32)
	defer end()
	if err := tr.plugin.healthy(patience / 4); err != nil {
		tr.Fatalf("asked whether it is well, while 32 calls wait for the upstream: %v", err)
	}
	ctx, cancel := context.WithTimeout(tr.Context(), patience/4)
	defer cancel()
	if _, err := tr.plugin.Describe(ctx); err != nil {
		tr.Errorf("asked for its manifest, while 32 calls wait for the upstream: %v", err)
	}
}
