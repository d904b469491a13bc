package identity_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/identity"
)

func TestOneVisitorLooksTheProviderUp(t *testing.T) {
	t.Parallel()
	var asked, clock atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(server.Close)
	p := identity.New(identity.Config{Issuer: server.URL}, func() time.Time { return time.Unix(clock.Load(), 0) })
	visit := func() {
		var visitors sync.WaitGroup
		for range 8 {
			visitors.Go(func() {
				if _, _, err := p.Begin(t.Context(), false); !errors.Is(err, identity.ErrDown) {
					t.Errorf("while the provider is down: %v", err)
				}
			})
		}
		visitors.Wait()
	}
	visit()
	if n := asked.Load(); n != 1 {
		t.Errorf("eight visitors at once asked %d times", n)
	}
	clock.Add(5)
	visit()
	if n := asked.Load(); n != 2 {
		t.Errorf("after five seconds it was asked %d times in all", n)
	}
}
