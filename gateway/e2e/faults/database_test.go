package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestPaymentsSurviveDatabaseOutages takes the database away under load: once it
// refuses connections, once it is silent. Nothing crashes, every answer has the
// contract's shape and comes in time, and afterwards everything works without a
// restart.
func TestPaymentsSurviveDatabaseOutages(t *testing.T) {
	t.Parallel()
	proxy := harness.NewProxy(t, dbtest.New(t, "", nil))
	p := harness.Start(t, harness.Settings{DatabaseURL: proxy.URL})
	l := harness.NewLoad(p.Shop(harness.Large, "test"))
	ctx, cancel := context.WithCancel(t.Context())
	finished := make(chan struct{})
	go func() {
		runPaced(ctx, l, 8)
		close(finished)
	}()
	for _, away := range []struct {
		how   func()
		lasts time.Duration
	}{{proxy.Refuse, 5 * time.Second}, {proxy.Silence, 6 * time.Second}} {
		wantSuccess(t, l)
		away.how()
		<-time.After(away.lasts)
		if err := p.Admin().Ready(t.Context()); err == nil {
			t.Error("/readyz says ready without a database")
		}
		proxy.Restore()
	}
	wantSuccess(t, l)
	cancel()
	<-finished
	if !p.Running() {
		t.Fatal("the gateway ended")
	}
	l.WantInContract(t, 35*time.Second, fault.Internal, fault.ProviderTimeout, fault.ProviderUnavailable, fault.InProgress)
	l.Resolve(t)
	harness.Await(t, 5*time.Second, "readiness", func() bool { return p.Admin().Ready(t.Context()) == nil })
}

// wantSuccess waits until a new payment can be made.
func wantSuccess(t *testing.T, l *harness.Load) {
	t.Helper()
	harness.Await(t, 10*time.Second, "a payment that is made", func() bool {
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
