package harness

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/database"
	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
)

// How long tests wait at most. They are for failures alone: a machine five times slower
// than ours keeps them.
const (
	ReadyWithin      = 5 * time.Minute  // a program that was started
	StopsWithin      = time.Minute      // a program that was told to stop
	GoneWithin       = 30 * time.Second // plugins and simulators after kill -9 of the gateway
	ActsWithin       = 30 * time.Second // a replica, on what an operator did
	PolicyLiveWithin = 30 * time.Second // an edit of a policy
	PaidWithin       = time.Minute      // outcomes that the sandbox brings

	// CallbacksWithin is for deliveries when something went wrong: leases of a dead
	// replica run out after 10 s, and so does a send.
	CallbacksWithin = 2 * time.Minute

	// ResolvesWithin is for the longest life of a payment: a call that nothing came
	// back from is proven never sent by two lookups, the first after send_by and
	// settles_within, which are 35 s after the reservation. One that met a kill comes again
	// after five minutes, and so does the other.
	ResolvesWithin = 15 * time.Minute

	// EndsWithin is when the last order has ended: that a bill was never sent is
	// proven by two lookups after two minutes, and a lookup that met a kill comes
	// again after five.
	EndsWithin = 15 * time.Minute
)

// ErrTimeout is that a condition did not hold in time.
var ErrTimeout = errors.New("waited in vain")

// Most conditions ask the program, so what takes longer is looked at less often: after an eighth of the time that it took
// so far.
const (
	shortestPause = 20 * time.Millisecond
	longestPause  = 200 * time.Millisecond
)

// Until polls a condition until it holds, or returns ErrTimeout.
func Until(within time.Duration, holds func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	for began := time.Now(); !holds(); {
		select {
		case <-ctx.Done():
			if holds() { // the test itself may have had no processor meanwhile
				return nil
			}
			return ErrTimeout
		case <-time.After(min(max(time.Since(began)/8, shortestPause), longestPause)):
		}
	}
	return nil
}

// Await is Until for the test's own goroutine.
func Await(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	if err := Until(within, holds); err != nil {
		t.Fatalf("%v for %s, %v", err, what, within)
	}
}

// RequirePostgreSQL skips a test that is about PostgreSQL on other engines.
func RequirePostgreSQL(t testing.TB) {
	t.Helper()
	if engine := dbtest.Engine(t); engine != database.PostgreSQL {
		t.Skipf("is about PostgreSQL; this run is on %s", engine)
	}
}
