package faults_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
)

// TestPaymentsSurviveGatewayKills kills the gateway at random moments while many
// clients create payments, and starts it again each time, while its plugins and
// simulators are still ending.
func TestPaymentsSurviveGatewayKills(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: dbtest.New(t, "", nil)}
	p := harness.Start(t, s)
	first := p.Document
	l := harness.NewLoad(p.Shop(harness.Large, "live"))
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			l.CreateUntilDone(ctx, 32)
			close(finished)
		}()
		moment := 100*time.Millisecond + time.Duration(random.Int64N(int64(700*time.Millisecond)))
		<-time.After(moment)
		p.Kill(t)
		cancel()
		<-finished
		p = harness.Start(t, s)
		p.WantSameMerchants(t, first)
		l.Shop = p.Shop(harness.Large, "live")
	}
	l.Resolve(t)
	// What was answered before a crash can still be paid, on its own page.
	for _, a := range l.Attempts {
		if a.First == nil || !a.First.Success {
			continue
		}
		made := a.First.Payment()
		if made.QRString != "" {
			p.Pay(t, harness.Fields{"qr_string": made.QRString})
		} else {
			p.Pay(t, harness.Fields{"url": p.CheckoutURL(made)})
		}
		l.AwaitStatus(t, made.ExternalID, "PAID", harness.PaidWithin)
		break
	}
	p.Stop(t)
}
