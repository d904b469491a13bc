package edge_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/seed-f006e74d/gerbang/gateway/fault"
	"github.com/seed-f006e74d/gerbang/gateway/kind"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestStrangersReadAFewAtATime: whatever somebody without a known key asks for, four
// reads are under way. The next wait for their turn, and not for long. Merchants and
// providers that are known do not wait.
func TestStrangersReadAFewAtATime(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a key": "/payments/create", "a token": "/notify/payments/guessed", "a page": "/checkout/guessed/state"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { strangers(t, path) })
		})
	}
}

func strangers(t *testing.T, path string) {
	h := build(t)
	h.noRoute = fault.New(fault.NotFound, "There is no such path.")
	var mu sync.Mutex
	reads, answered := 0, make(chan struct{})
	read := func() {
		mu.Lock()
		reads++
		mu.Unlock()
		<-answered
	}
	h.findRoute = read
	h.checkout = func(string) (kind.Checkout, error) {
		read()
		return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
	}
	h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) {
		if err != nil {
			read()
		}
		return id, err
	}
	answers := make(chan answer)
	for range 10 {
		go func() { answers <- h.send(t, methodOf(path), path, `{"secret_key":"x"}`) }()
	}
	synctest.Wait()
	if reads != 4 {
		t.Errorf("%d reads are under way, want 4", reads)
	}
	if got := h.create(t, h.right("")); got.StatusCode != http.StatusOK {
		t.Errorf("a known key waits: %s", got.text)
	}
	h.noRoute = nil
	h.send(t, http.MethodPost, "/notify/payments/t", "{}").wantFault(t, fault.NotFound) // of the notifier
	answered <- struct{}{}
	<-answers
	synctest.Wait()
	if reads != 5 {
		t.Errorf("%d reads have begun after one was answered, want 5", reads)
	}
	for range 5 { // who have waited long enough
		got := <-answers
		if got.wantFault(t, fault.RateLimited); got.Header.Get("Retry-After") != "1" {
			t.Errorf("it does not say when: %v", got.Header)
		}
	}
	close(answered)
	for range 4 {
		<-answers
	}
}

func methodOf(path string) string {
	if path == "/checkout/guessed/state" {
		return http.MethodGet
	}
	return http.MethodPost
}

// TestPanicGivesTheTurnBack: what fails with a panic, as often as it likes, keeps nobody
// out.
func TestPanicGivesTheTurnBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := build(t)
		h.authenticated = func(tenants.Identity, error) (tenants.Identity, error) { panic("who knows") }
		for range 10 {
			h.send(t, http.MethodPost, "/payments/create", `{"secret_key":"x"}`).wantFault(t, fault.Internal)
		}
	})
}

// TestPayersDoNotWaitForKeys that somebody guesses at.
func TestPayersDoNotWaitForKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, answered, guessers := build(t), make(chan struct{}), sync.WaitGroup{}
		h.checkout = func(string) (kind.Checkout, error) {
			return kind.Checkout{}, fault.New(fault.NotFound, "There is no such payment.")
		}
		h.authenticated = func(id tenants.Identity, err error) (tenants.Identity, error) {
			<-answered
			return id, err
		}
		for range 10 {
			guessers.Go(func() { h.send(t, http.MethodPost, "/payments/create", `{"secret_key":"x"}`) })
		}
		synctest.Wait()
		h.send(t, http.MethodGet, "/checkout/1/state", "").wantFault(t, fault.NotFound)
		close(answered)
		guessers.Wait()
	})
}
