package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// findIndexes are ways to find a movement. As it is done: by an id of others' by the
// time of its reservation, and by its merchant's reference by the key. The others have
// neither, or an index for references, too, or for each of the ids.
var findIndexes = map[string][]string{
	"none":      {"DROP INDEX movements_created"},
	"time":      nil,
	"reference": {"CREATE INDEX r ON movements (left(md5(reference), 8), created_at)"},
	"each": {
		"DROP INDEX movements_created", "CREATE INDEX a ON movements (request_id)",
		"CREATE INDEX b ON movements (decision_id) WHERE decision_id <> ''",
		"CREATE INDEX c ON movements (provider_reference) WHERE provider_reference <> ''",
	},
}

// BenchmarkReserveFindable measures what finding costs those who reserve: payments from
// 64 goroutines, the ways in turns, because other load on the machine would else
// decide. The metrics are how many times as long a payment takes as without any.
func BenchmarkReserveFindable(b *testing.B) {
	const rounds, goroutines = 12, 64
	names := slices.Sorted(maps.Keys(findIndexes))
	pays, took := map[string]payment{}, map[string]time.Duration{}
	for _, name := range names {
		url := database(b)
		execute(b, url, findIndexes[name]...)
		pays[name] = findable(b, url)
	}
	each := max(b.N/rounds, 1)
	for round := range rounds {
		for i := range names {
			name := names[(i+round)%len(names)] // nobody is always first
			start := time.Now()
			concurrently(b, pays[name], each, goroutines)
			took[name] += time.Since(start)
		}
	}
	b.ReportMetric(float64(rounds*each)/took["none"].Seconds(), "none/s")
	b.ReportMetric(float64(took["time"])/float64(took["none"]), "x_time")
	b.ReportMetric(float64(took["reference"])/float64(took["none"]), "x_reference")
	b.ReportMetric(float64(took["each"])/float64(took["none"]), "x_each")
}

// findable is a payment that has every id that it may be found by.
func findable(b *testing.B, url string) payment {
	s := open(b, url, store.Options{MaxConns: 32})
	return func(ctx context.Context) error {
		d := draft(uuid.NewString())
		d.DecisionID = uuid.NewString()
		m, reserved, err := s.Reserve(ctx, d)
		if err != nil || !reserved {
			return fmt.Errorf("reserve: %v, %w", reserved, err)
		}
		change := move(m, movement.Pending)
		change.Result, change.Answer, change.ProviderReference = m.Request, m.Request, uuid.NewString()
		change.NextPoll = epoch.Add(time.Minute)
		if ok, err := apply(ctx, s, epoch, change); err != nil || !ok {
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
