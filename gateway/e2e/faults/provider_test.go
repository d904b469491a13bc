package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
)

// TestPaymentsSurviveFaults creates payments while everything around the gateway fails. The provider fails in every
// way, a client hangs up, the plugin is killed during a call, the database refuses connections and falls silent, and the
// gateway itself is killed under load. Nothing else ends, answers keep to the contract, and afterwards every reference is
// answered and is one payment. In the long tier each fault meets each kind of payment, the gateway is killed four times,
// and payments expire meanwhile.
func TestPaymentsSurviveFaults(t *testing.T) {
	t.Parallel()
	proxy := harness.NewProxy(t, harness.DevDatabase(t))
	s := harness.Settings{Data: harness.DataDir(t), DatabaseURL: proxy.URL}
	p := harness.Start(t, s)
	l := harness.NewLoad(p.Shop(harness.Large, "live"))
	dying := p.Shop(harness.Large, "test")
	link := dying.Create(t, harness.Fields{"expires_in": 60, "amount": 31000})
	code := dying.Create(t, harness.Fields{"expires_in": 60, "amount": 31001, "type": "qris"})
	for i, name := range []string{"latency", "drop_after", "garbage", "error_500", "drop_before"} {
		kinds := []string{"payment_link", "qris"}
		if !tier.IsLong() {
			kinds = kinds[i%2:][:1]
		}
		for _, kind := range kinds {
			meets(t, l, name, kind)
		}
	}
	l.WantInContract(t, answersWithin, fault.ProviderTimeout, fault.ProviderUnavailable)
	hangUp(t, l)
	killPlugin(t, l)
	loseDatabase(t, l, proxy)
	p = killGateway(t, l, s)
	l.Resolve(t)
	dying = dying.At(p)
	if tier.IsLong() {
		for _, made := range []harness.Payment{link, code} {
			dying.AwaitStatus(t, made.ExternalID, "EXPIRED", 2*time.Minute)
		}
		p.Pay(t, harness.Fields{"qr_string": code.QRString})
		harness.Await(t, harness.PaidWithin, "paid_late_at", func() bool { return dying.Status(t, code.ExternalID).PaidLateAt != "" })
	}
	payAnswered(t, l, p)
	p.Stop(t)
}

// answersWithin is longer than any answer takes, on a machine that is slow, too.
const answersWithin = time.Minute

// meets makes one creation meet a fault.
func meets(t *testing.T, l *harness.Load, name, kind string) {
	t.Helper()
	a := l.NewAttempt(kind)
	// A breaker that earlier faults have opened lets nothing through for a while.
	l.AwaitClosedBreaker(t, "payments")
	l.Inject(t, name, harness.FaultOperations[kind], 1)
	l.Try(t.Context(), a)
	if a.Err != nil {
		t.Fatalf("%s of %s: %v", name, kind, a.Err)
	}
	t.Logf("%s of %s: %s after %v", name, kind, a.First, a.Took.Round(time.Millisecond))
	if name == "latency" && !a.First.Success {
		t.Errorf("a slow provider: %s", a.First)
	}
}

// hangUp ends a client's request while the provider works on it.
func hangUp(t *testing.T, l *harness.Load) {
	t.Helper()
	l.AwaitClosedBreaker(t, "payments")
	l.Inject(t, "latency", harness.FaultOperations["payment_link"], 1)
	impatient, hang := context.WithCancel(t.Context())
	a, gone := l.NewAttempt("payment_link"), make(chan struct{})
	go func() {
		l.Try(impatient, a)
		close(gone)
	}()
	l.AwaitInFlight(t, 1)
	hang()
	<-gone
	if a.Err == nil {
		t.Errorf("a client that hung up was answered %s", a.First)
	}
	// Others are served meanwhile.
	other := l.NewAttempt("qris")
	if l.Try(t.Context(), other); other.Err != nil || !other.First.Success {
		t.Errorf("another client: %v, %v after %v", other.First, other.Err, other.Took)
	}
	// Nobody asks for it, and yet it is made.
	harness.Await(t, harness.ReadyWithin, "the payment that nobody waits for", func() bool {
		for _, m := range l.UpstreamMovements(t) {
			if m.Amount == a.Amount {
				return true
			}
		}
		return false
	})
	l.AwaitInFlight(t, 0)
	var again harness.Answer
	harness.Await(t, harness.ReadyWithin, "the end of the first request", func() bool {
		var err error
		if again, err = l.Post(t.Context(), "/payments/create", a.Order); err != nil {
			t.Fatal(err)
		}
		return again.Code != fault.InProgress
	})
	if !again.Replayed() {
		t.Errorf("the same request again: %s; want its first answer", again)
	}
}

// killPlugin kills the plugin while a call is inside.
func killPlugin(t *testing.T, l *harness.Load) {
	t.Helper()
	l.AwaitClosedBreaker(t, "payments")
	l.Inject(t, "latency", harness.FaultOperations["payment_link"], 1)
	a, answered := l.NewAttempt("payment_link"), make(chan struct{})
	go func() {
		l.Try(t.Context(), a)
		close(answered)
	}()
	l.AwaitInFlight(t, 1)
	harness.KillProcess(t, l.OneProcess(t, "the plugin", harness.Process.IsPlugin))
	killed := time.Now()
	wantSuccess(t, l)
	t.Logf("%v after the plugin was killed a call worked", time.Since(killed).Round(time.Millisecond))
	<-answered
	if a.Err != nil || !a.First.Success && a.First.Code != fault.ProviderTimeout {
		t.Errorf("the call that was inside: %v, %v", a.First, a.Err)
	}
}
