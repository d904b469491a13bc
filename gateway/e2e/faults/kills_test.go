package faults_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// killGateway kills the gateway at random moments while many clients create payments, and starts it again each time,
// while its plugins and simulators are still ending. It returns the one that runs.
func killGateway(t *testing.T, l *harness.Load, s harness.Settings) *harness.Program {
	t.Helper()
	p, first, kills := l.Program, l.Document, 1
	if tier.IsLong() {
		kills = 4
	}
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	for range kills {
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			l.CreateUntilDone(ctx, 32)
			close(finished)
		}()
		<-time.After(100*time.Millisecond + time.Duration(random.Int64N(int64(700*time.Millisecond)))) // the moment
		p.Kill(t)
		cancel()
		<-finished
		p = harness.Start(t, s)
		p.WantSameMerchants(t, first)
		l.Shop = p.Shop(harness.Large, "live")
	}
	return p
}

// payAnswered pays a payment that was answered before a crash, on its own page.
func payAnswered(t *testing.T, l *harness.Load, p *harness.Program) {
	t.Helper()
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
		return
	}
	t.Error("no payment was answered before the crash")
}
