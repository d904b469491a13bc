package faults_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestProviderFaults makes the provider fail in every way, hangs up, and kills
// the plugin during a call. Then all references are sent again, and each must end
// in one payment. In the meantime other payments expire after the shortest
// allowed time.
func TestProviderFaults(t *testing.T) {
	t.Parallel()
	p := harness.Start(t, harness.Settings{})
	l := harness.NewLoad(p.Shop(harness.Large, "live"))
	dying := p.Shop(harness.Large, "test")
	link := dying.Create(t, harness.Fields{"expires_in": 60, "amount": 31000})
	code := dying.Create(t, harness.Fields{"expires_in": 60, "amount": 31001, "type": "qris"})
	for _, kind := range []string{"payment_link", "qris"} {
		for _, name := range []string{"latency", "drop_after", "garbage", "error_500", "drop_before"} {
			meets(t, l, name, kind)
		}
	}
	l.WantInContract(t, 15*time.Second, fault.ProviderTimeout, fault.ProviderUnavailable)
	hangUp(t, l)
	killPlugin(t, l)
	l.Resolve(t)
	for _, a := range l.Attempts {
		l.AwaitStatus(t, a.Order["external_id"].(string), "PENDING", time.Second)
	}
	for _, made := range []harness.Payment{link, code} {
		dying.AwaitStatus(t, made.ExternalID, "EXPIRED", time.Minute)
	}
	p.Pay(t, harness.Fields{"qr_string": code.QRString})
	harness.Await(t, harness.PaidWithin, "paid_late_at", func() bool { return dying.Status(t, code.ExternalID).PaidLateAt != "" })
}

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
	if l.Try(t.Context(), other); other.Err != nil || !other.First.Success || other.Took > 2*time.Second {
		t.Errorf("another client: %v, %v after %v", other.First, other.Err, other.Took)
	}
	// Nobody asks for it, and yet it is made.
	harness.Await(t, 10*time.Second, "the payment that nobody waits for", func() bool {
		for _, m := range l.UpstreamMovements(t) {
			if m.Amount == a.Amount {
				return true
			}
		}
		return false
	})
	l.AwaitInFlight(t, 0)
	var again harness.Answer
	harness.Await(t, 10*time.Second, "the end of the first request", func() bool {
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
	for { // the next call works within 2 s
		next := l.NewAttempt("qris")
		if l.Try(t.Context(), next); next.Err != nil {
			t.Fatalf("after the plugin was killed: %v", next.Err)
		}
		if next.First.Success {
			break
		}
		if time.Since(killed) > 2*time.Second {
			t.Fatalf("%v after the plugin was killed: %s", time.Since(killed), next.First)
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Logf("%v after the plugin was killed a call worked", time.Since(killed).Round(time.Millisecond))
	<-answered
	if a.Err != nil || !a.First.Success && a.First.Code != fault.ProviderTimeout {
		t.Errorf("the call that was inside: %v, %v", a.First, a.Err)
	}
}
