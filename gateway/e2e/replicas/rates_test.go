package replicas_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/fault"
)

// holdsOverAll sends a merchant's requests to all replicas in turns. Together they admit
// its burst once: at this rate nothing comes back while the test runs.
func holdsOverAll(t *testing.T, s harness.Shop, replicas ...*harness.Program) {
	t.Helper()
	const (
		burst = 99 // less than the tier's, so that the bucket holds it at once
		lost  = 25 // requests and leases at the tier's rate, which does not come back
		more  = 25 // what came back before all knew the new rate, and a request on credit each
	)
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "a replica that knows the others", func() bool { return p.LogCount("rates are leased") > 0 })
	}
	admitted := 0
	ask := func(p *harness.Program, burst int) (known bool) {
		a := s.At(p).Ask(t, "/payments/status", harness.Fields{"external_id": "none"})
		if known = strings.Contains(a.Header.Get("RateLimit-Policy"), "q="+strconv.Itoa(burst)+";"); known && a.Code != fault.RateLimited {
			admitted++
		}
		return known
	}
	s.MustRun(t, "", nil, "merchant", "limit", s.MerchantID, "--rate", "1/h", "--burst", strconv.Itoa(burst), "--reason", "for a test")
	for _, p := range replicas {
		harness.Await(t, harness.ReadyWithin, "the merchant's own rate", func() bool { return ask(p, burst) })
	}
	harness.Await(t, harness.ReadyWithin, "the burst", func() bool {
		for _, p := range replicas {
			ask(p, burst)
		}
		return admitted >= burst-lost
	})
	for range burst {
		for _, p := range replicas {
			ask(p, burst)
		}
	}
	t.Logf("%d replicas admitted %d of a burst of %d", len(replicas), admitted, burst)
	if admitted > burst+more {
		t.Errorf("%d replicas admitted %d of a burst of %d", len(replicas), admitted, burst)
	}
}
