package store_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// findIndexes are those that only finding a movement by somebody's id needs.
var findIndexes = []string{"movements_request_id", "movements_decision_id", "movements_provider_reference"}

// BenchmarkClaimFindable measures what the indexes of finding cost: payments from
// 64 goroutines with them and without, in turns, because other load on the machine
// would else decide. The metric x_without is how many times as long a payment takes.
func BenchmarkClaimFindable(b *testing.B) {
	const rounds, goroutines = 12, 64
	with, without := database(b), database(b)
	for _, index := range findIndexes {
		execute(b, without, "DROP INDEX "+index)
	}
	ways := []struct {
		pay payment
		sum time.Duration
	}{{pay: findable(b, with)}, {pay: findable(b, without)}}
	each := max(b.N/rounds, 1)
	for round := range 2 * rounds {
		way := &ways[(round+round/2)%2] // with, without, without, with: neither is always first
		start := time.Now()
		concurrently(b, way.pay, each, goroutines)
		way.sum += time.Since(start)
	}
	n := float64(rounds * each)
	b.ReportMetric(n/ways[0].sum.Seconds(), "with/s")
	b.ReportMetric(n/ways[1].sum.Seconds(), "without/s")
	b.ReportMetric(float64(ways[0].sum)/float64(ways[1].sum), "x_without")
}

// findable is a payment that has every id that it may be found by.
func findable(b *testing.B, url string) payment {
	s := open(b, url, store.Options{MaxConns: 32})
	return func(ctx context.Context) error {
		d := draft(uuid.NewString())
		d.DecisionID = uuid.NewString()
		m, claimed, err := s.Claim(ctx, d)
		if err != nil || !claimed {
			return fmt.Errorf("claim: %v, %w", claimed, err)
		}
		change := move(m, movement.Pending)
		change.Result, change.Answer, change.ProviderReference = m.Request, m.Request, uuid.NewString()
		change.DueAt = epoch.Add(time.Minute)
		if ok, err := s.Move(ctx, epoch, change); err != nil || !ok {
			return fmt.Errorf("move: %v, %w", ok, err)
		}
		return nil
	}
}

func concurrently(b *testing.B, pay payment, n, goroutines int) {
	b.Helper()
	var group errgroup.Group
	group.SetLimit(goroutines)
	for range n {
		group.Go(func() error { return pay(b.Context()) })
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
}
