package simulator_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/database/dbtest"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/simulator"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
	"github.com/seed-f006e74d/gerbang/gateway/tier"
	"github.com/seed-f006e74d/gerbang/sdk/money"
	"github.com/seed-f006e74d/gerbang/tenants"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// TestHistoriesOnDatabase plays shorter histories on the real store. Each has merchants
// of its own, and a lane of its own to the one database.
func TestHistoriesOnDatabase(t *testing.T) {
	t.Parallel()
	url := dbtest.New(t, "simulator"+store.MigrationsDigest(), func(ctx context.Context, url string) error {
		return store.Migrate(ctx, url, slog.New(slog.DiscardHandler))
	})
	t.Cleanup(func() { endsAreKept(t, url) })
	const lanes = 4
	all := upTo(0, 200)
	if !tier.IsLong() {
		all = append(upTo(0, 10), tier.Sample(t, upTo(10, drawnFrom), 10)...)
	}
	for lane := range lanes {
		t.Run(fmt.Sprintf("lane %d", lane), func(t *testing.T) {
			t.Parallel()
			s, err := store.Open(t.Context(), url, store.Options{MaxConns: 4})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			for i := lane; i < len(all); i += lanes {
				seed := all[i]
				outside := newOutside(s)
				result := simulator.Run(t, seed, simulator.Options{
					Intents: 5, Prefix: uuid.NewString(), Store: func() storetest.Store { return outside },
				})
				outside.end()
				report(t, seed, result)
			}
		})
	}
}

// endsAreKept holds what the lists by state go by to the states themselves.
func endsAreKept(t *testing.T, url string) {
	t.Helper()
	conn, err := pgx.Connect(context.WithoutCancel(t.Context()), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	var movements, kept int
	err = conn.QueryRow(context.WithoutCancel(t.Context()), `SELECT count(*), count(*) FILTER (
		WHERE ended = CASE
			WHEN state IN ('submitting', 'acknowledged', 'pending') THEN ''
			WHEN state = 'succeeded' AND reversed_at IS NOT NULL THEN 'returned'
			ELSE state END) FROM movements`).Scan(&movements, &kept)
	if err != nil || movements == 0 || kept != movements {
		t.Errorf("of %d movements %d have the end of their state: %v", movements, kept, err)
	}
}

// credited is the real store with the credit that an operator gives.
type credited struct{ *store.Store }

func (c credited) Credit(ctx context.Context, owner movement.Owner, amount money.Amount) error {
	audit := store.Audit{Operator: "operator", Action: "test", At: time.Now()}
	merchant := tenants.Merchant{ID: tenants.MerchantID(owner.MerchantID), Name: "Toko", Tier: "scale", Status: tenants.Active}
	if err := c.CreateMerchant(ctx, audit, merchant, nil, nil); err != nil {
		return err
	}
	_, err := c.Adjust(ctx, audit, store.Adjustment{Owner: owner, Reference: "opening", Amount: amount, Reason: "opening"}, money.Max)
	return err
}
