package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// loseDatabase takes the database away under load: once it refuses connections, once it is silent. The gateway says that
// it is not ready, every answer has the contract's shape, and afterwards everything works without a restart.
func loseDatabase(t *testing.T, l *harness.Load, proxy *harness.Proxy) {
	t.Helper()
	before := len(l.Attempts)
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		runPaced(ctx, l, 8)
		close(finished)
	}()
	for _, away := range []func(){proxy.Refuse, proxy.Silence} {
		wantSuccess(t, l)
		failed := failures(l)
		away()
		harness.Await(t, harness.ReadyWithin, "a gateway that is not ready without a database", func() bool { return l.Admin().Ready(t.Context()) != nil })
		harness.Await(t, harness.ReadyWithin, "a payment that is not made without a database", func() bool { return failures(l) > failed })
		proxy.Restore()
	}
	wantSuccess(t, l)
	cancel()
	<-finished
	if !l.Running() {
		t.Fatal("the gateway ended")
	}
	during := &harness.Load{Attempts: l.Attempts[before:]}
	during.WantInContract(t, answersWithin, fault.Internal, fault.ProviderTimeout, fault.ProviderUnavailable, fault.InProgress)
	harness.Await(t, harness.ReadyWithin, "readiness", func() bool { return l.Admin().Ready(t.Context()) == nil })
}

// failures counts the attempts that were not answered with success.
func failures(l *harness.Load) (n int) {
	for _, a := range l.Tried() {
		if !good(a) {
			n++
		}
	}
	return n
}

// wantSuccess waits until a new payment can be made.
func wantSuccess(t *testing.T, l *harness.Load) {
	t.Helper()
	harness.Await(t, harness.ReadyWithin, "a payment that is made", func() bool {
		a := l.NewAttempt("qris")
		l.Try(t.Context(), a)
		return a.Err == nil && a.First.Success
	})
}

// runPaced is run at a pace that leaves few references to send again.
func runPaced(ctx context.Context, l *harness.Load, clients int) {
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			tick := time.NewTicker(100 * time.Millisecond)
			defer tick.Stop()
			for ctx.Err() == nil {
				l.Try(context.WithoutCancel(ctx), l.NewAttempt("payment_link"))
				<-tick.C
			}
		})
	}
	group.Wait()
}
