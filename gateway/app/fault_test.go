package app_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/adminapi"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// faultOperations are the simulator's names of what creates each type.
var faultOperations = map[string]string{"payment_link": "invoices.create", "qris": "qr_codes.create"}

// TestProviderFaults makes the provider fail in every way, hangs up, and kills
// the plugin in a call. Then all references are sent again, and each must end
// in one payment. Meanwhile others live out the shortest life there is.
func TestProviderFaults(t *testing.T) {
	t.Parallel()
	p := start(t, settings{})
	l := newLoad(p.shop(large, "live"))
	dying := p.shop(large, "test")
	link := dying.create(t, fields{"expires_in": 60, "amount": 31000})
	code := dying.create(t, fields{"expires_in": 60, "amount": 31001, "type": "qris"})
	for _, kind := range []string{"payment_link", "qris"} {
		for _, name := range []string{"latency", "drop_after", "garbage", "error_500", "drop_before"} {
			l.meets(t, name, kind)
		}
	}
	l.inContract(t, 15*time.Second, fault.ProviderTimeout, fault.ProviderUnavailable)
	hangUp(t, l)
	killPlugin(t, l)
	l.settle(t)
	for _, a := range l.attempts {
		l.becomes(t, a.order["external_id"].(string), "PENDING", time.Second)
	}
	for _, made := range []payment{link, code} {
		dying.becomes(t, made.ExternalID, "EXPIRED", time.Minute)
	}
	p.pay(t, fields{"qr_string": code.QRString})
	await(t, paidWithin, "paid_late_at", func() bool { return dying.status(t, code.ExternalID).PaidLateAt != "" })
}

// meets makes one creation meet a fault.
func (l *load) meets(t *testing.T, name, kind string) {
	t.Helper()
	a := l.attempt(kind)
	// A breaker that earlier faults have opened lets nothing through for a while.
	l.closedBreaker(t, "payments")
	l.inject(t, name, faultOperations[kind], 1)
	l.try(t.Context(), a)
	if a.err != nil {
		t.Fatalf("%s of %s: %v", name, kind, a.err)
	}
	t.Logf("%s of %s: %s after %v", name, kind, a.first, a.took.Round(time.Millisecond))
	if name == "latency" && !a.first.Success {
		t.Errorf("a slow provider: %s", a.first)
	}
}

// closedBreaker waits until a provider's plugin runs and calls are let through.
func (p *program) closedBreaker(t *testing.T, provider string) {
	t.Helper()
	await(t, time.Minute, "a closed breaker", func() bool {
		found, err := p.plugin(t, provider)
		return err == nil && found.Running &&
			!slices.ContainsFunc(found.Breakers, func(b adminapi.Breaker) bool { return b.Calls == "open" })
	})
}

// plugin is a provider's plugin as an operator sees it.
func (p *program) plugin(t *testing.T, provider string) (adminapi.Plugin, error) {
	t.Helper()
	plugins, err := p.admin().Plugins(t.Context())
	at := slices.IndexFunc(plugins, func(one adminapi.Plugin) bool { return one.Provider == provider })
	if err == nil && at < 0 {
		err = fmt.Errorf("no plugin is %s", provider)
	}
	if err != nil {
		return adminapi.Plugin{}, err
	}
	return plugins[at], nil
}

// inFlight waits until calls are inside the plugin.
func (l *load) inFlight(t *testing.T, calls int) {
	t.Helper()
	await(t, 5*time.Second, fmt.Sprintf("%d calls inside the plugin", calls), func() bool {
		found, err := l.plugin(t, "payments")
		return err == nil && found.InFlight == calls
	})
}

// hangUp ends a client's request while the provider works on it.
func hangUp(t *testing.T, l *load) {
	t.Helper()
	l.inject(t, "latency", faultOperations["payment_link"], 1)
	impatient, hang := context.WithCancel(t.Context())
	a, gone := l.attempt("payment_link"), make(chan struct{})
	go func() {
		l.try(impatient, a)
		close(gone)
	}()
	l.inFlight(t, 1)
	hang()
	<-gone
	if a.err == nil {
		t.Errorf("a client that hung up was answered %s", a.first)
	}
	// Others are served meanwhile.
	other := l.attempt("qris")
	if l.try(t.Context(), other); other.err != nil || !other.first.Success || other.took > 2*time.Second {
		t.Errorf("another client: %v, %v after %v", other.first, other.err, other.took)
	}
	// Nobody asks for it, and yet it is made.
	await(t, 10*time.Second, "the payment that nobody waits for", func() bool {
		for _, m := range l.movements(t) {
			if m.Amount == a.amount {
				return true
			}
		}
		return false
	})
	l.inFlight(t, 0)
	if again, err := l.post(t.Context(), "/payments/create", a.order); err != nil || !again.replayed() {
		t.Errorf("the same request again: %s, %v; want its first answer", again, err)
	}
}

// killPlugin kills the plugin while a call is inside.
func killPlugin(t *testing.T, l *load) {
	t.Helper()
	l.inject(t, "latency", faultOperations["payment_link"], 1)
	a, answered := l.attempt("payment_link"), make(chan struct{})
	go func() {
		l.try(t.Context(), a)
		close(answered)
	}()
	l.inFlight(t, 1)
	killProcess(t, l.one(t, "the plugin", process.isPlugin))
	killed := time.Now()
	for { // the next call works within 2 s
		next := l.attempt("qris")
		if l.try(t.Context(), next); next.err != nil {
			t.Fatalf("after the plugin was killed: %v", next.err)
		}
		if next.first.Success {
			break
		}
		if time.Since(killed) > 2*time.Second {
			t.Fatalf("%v after the plugin was killed: %s", time.Since(killed), next.first)
		}
		<-time.After(50 * time.Millisecond)
	}
	t.Logf("%v after the plugin was killed a call worked", time.Since(killed).Round(time.Millisecond))
	<-answered
	if a.err != nil || !a.first.Success && a.first.Code != fault.ProviderTimeout {
		t.Errorf("the call that was inside: %v, %v", a.first, a.err)
	}
}
