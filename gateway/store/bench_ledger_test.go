package store_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// BenchmarkLedger measures orders that are charged and end well, each with two
// postings and a callback: of many merchants and of one, with commits that are
// shared and without.
func BenchmarkLedger(b *testing.B) {
	for _, merchants := range []int{1000, 1} {
		for _, own := range []bool{false, true} {
			name := fmt.Sprintf("%d_merchants/shared", merchants)
			if own {
				name = fmt.Sprintf("%d_merchants/own_commits", merchants)
			}
			b.Run(name, func(b *testing.B) {
				url := database(b)
				rich(b, url, merchants)
				order := orders(open(b, url, store.Options{MaxConns: 32, OwnCommits: own}), merchants)
				each := repeat(b, order, 256)
				b.ReportMetric(2e9/each, "postings/s")
			})
		}
	}
}

// rich gives merchants all the money in the world.
func rich(b *testing.B, url string, merchants int) {
	execute(b, url, fmt.Sprintf(`INSERT INTO ledger_balances (merchant_id, mode, available, held)
		SELECT 'mer_' || i, 'live', 1000000000000000, 0 FROM generate_series(0, %d) AS i`, merchants-1))
}

func orders(s *store.Store, merchants int) payment {
	var next atomic.Int64
	return func(ctx context.Context) error {
		m := order(uuid.NewString(), movement.Charged)
		m.Owner.MerchantID = fmt.Sprint("mer_", int(next.Add(1))%merchants)
		m, reserved, err := s.Reserve(ctx, m)
		if err != nil || !reserved {
			return fmt.Errorf("reserve: %v, %w", reserved, err)
		}
		change := posted(m, movement.Succeeded)
		change.Result, change.ProviderReference = m.Request, "inv-1"
		change.Callback = &movement.CallbackEvent{ID: uuid.New(), Event: "ppob.status_update", URL: m.CallbackURL, Body: m.Request}
		if ok, err := apply(ctx, s, epoch, change); err != nil || !ok {
			return fmt.Errorf("move: %v, %w", ok, err)
		}
		return nil
	}
}
