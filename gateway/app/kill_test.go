package app_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// TestKillUnderLoad kills the gateway while many clients create payments, at
// moments that nobody chose, and starts it again each time, beside what its
// plugins and simulators do about their end.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	random := rand.New(rand.NewPCG(seed, 0))
	t.Logf("seed %d", seed)
	s := settings{data: dataDir(t), databaseURL: dbtest.New(t, "", nil)}
	p := start(t, s)
	first := p.document
	l := newLoad(p.shop(large, "live"))
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		finished := make(chan struct{})
		go func() {
			l.run(ctx, 32)
			close(finished)
		}()
		moment := 100*time.Millisecond + time.Duration(random.Int64N(int64(700*time.Millisecond)))
		<-time.After(moment)
		p.kill(t)
		cancel()
		<-finished
		p = start(t, s)
		p.wantSameMerchants(t, first)
		l.shop = p.shop(large, "live")
	}
	l.settle(t)
	// What was answered before a crash can still be paid, on its own page.
	for _, a := range l.attempts {
		if a.first == nil || !a.first.Success {
			continue
		}
		made := a.first.payment()
		if made.QRString != "" {
			p.pay(t, fields{"qr_string": made.QRString})
		} else {
			p.pay(t, fields{"url": p.checkoutOf(made)})
		}
		l.becomes(t, made.ExternalID, "PAID", paidWithin)
		break
	}
	p.stop(t)
}
