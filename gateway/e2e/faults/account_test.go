package faults_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// TestDeadAccountIsItsMerchantsOwn: one merchant's account leads nowhere and is used
// all the time. Every other merchant is served all the time, and operators
// read whose account it is.
func TestDeadAccountIsItsMerchantsOwn(t *testing.T) {
	t.Parallel()
	d := harness.NewDeployment(t)
	p := d.Start(t, harness.ServeDatabase(t))[0]
	served, dead := d.NewShop(t, p, "growth"), d.NewShop(t, p, "growth")
	d.ConnectUnverified(t, p, dead.MerchantID, func(credentials json.RawMessage) json.RawMessage {
		return json.RawMessage(strings.ReplaceAll(string(credentials), "127.0.0.1", "127.0.0.2"))
	})
	// Its breaker opens at ten failures in ten seconds, so several calls are made at once: a
	// slow machine makes so many, too. Afterwards both are called for as long as the breaker opens and tries again.
	opened := `gerbang_plugin_breaker_opened_total{mode="live",provider="payments",scope="account"} 1`
	tick := time.NewTicker(time.Second / 5)
	defer tick.Stop()
	begun, refused, after := time.Now(), map[fault.Code]int{}, 0
	for after < 30 {
		for code, n := range createsAtOnce(t, dead, 4) {
			refused[code] += n
		}
		if a := served.Ask(t, "/payments/create", served.PaymentBody(nil)); a.Code == fault.ProviderUnavailable {
			t.Errorf("another merchant: %s", a)
		}
		switch _, body, _ := p.Get(t, p.ConsoleURL+"/metrics"); {
		case strings.Contains(string(body), opened):
			after++
		case time.Since(begun) > 5*time.Minute:
			t.Fatalf("the dead account is called all the time; its merchant was refused: %v", refused)
		}
		<-tick.C
	}
	t.Logf("the dead account's merchant was refused: %v", refused)
	p.WantException(t, "circuit_open", dead.MerchantID, "live", "connection to payments")
	status, body, _ := p.Get(t, p.ConsoleURL+"/metrics")
	for _, part := range []string{
		opened,
		`gerbang_plugin_breaker_opened_total{mode="live",provider="payments",scope="provider"} 0`,
	} {
		if status != http.StatusOK || !strings.Contains(string(body), part) {
			t.Errorf("/metrics: %d, without %s", status, part)
		}
	}
}

// createsAtOnce creates payments at the same time, and returns how often each error was answered.
func createsAtOnce(t *testing.T, s harness.Shop, n int) map[fault.Code]int {
	t.Helper()
	answers := make([]harness.Answer, n)
	var group sync.WaitGroup
	for i := range answers {
		group.Go(func() {
			var err error
			if answers[i], err = s.Post(t.Context(), "/payments/create", s.PaymentBody(nil)); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	refused := map[fault.Code]int{}
	for _, a := range answers {
		if !a.Success {
			refused[a.Code]++
		}
	}
	return refused
}
