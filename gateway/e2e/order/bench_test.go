package order_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/e2e/harness"
	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/sdk/manifest"
)

// benchGoods are what is ordered in benchmarks; it succeeds at once.
var benchGoods = goods{"S5", "081200001230", 0, 5_100, 5_100}

// BenchmarkOrders measures orders that are charged and succeed at once, as
// BenchmarkProgram measures payments: of a thousand merchants, and of one, whose
// balance every order changes.
//
// Beside it are the two commits of an order alone on the same database server:
// each by itself (db), and by the store as the gateway has it, which lets those
// that arrive together share a commit (store).
func BenchmarkOrders(b *testing.B) {
	harness.RequireDurable(b)
	edit := &harness.PolicyData{File: filepath.Join(b.TempDir(), "data.json")}
	edit.LiftRates(b)
	p := harness.Start(b, harness.Settings{Flags: []string{"--policy-dir", filepath.Dir(edit.File)}})
	upstream(b, p, "deposit", harness.Fields{"amount": 1_000_000_000_000})
	alone, shared := harness.OpenBareStore(b, true), harness.OpenBareStore(b, false)
	shops := manyBuyers(b, p, 1000)
	for _, many := range []int{len(shops), 1} {
		b.Run(fmt.Sprintf("merchants=%d", many), func(b *testing.B) {
			var next atomic.Int64
			p.InTurns(b, func(int) error {
				s := shops[int(next.Add(1))%many]
				return harness.WantOK(s.Post(b.Context(), "/ppob/order", benchGoods.order(harness.NewReference())))
			}, map[string]func(int) error{"db": storeOrders(b, alone, many), "store": storeOrders(b, shared, many)})
		})
	}
	p.WantCleanLedger(b)
}

// manyBuyers makes merchants that can spend as much as one operator may give.
func manyBuyers(b *testing.B, p *harness.Program, count int) []harness.Shop {
	b.Helper()
	shops := make([]harness.Shop, count)
	for i := range shops {
		shops[i] = newBuyer(b, p, 100_000_000)
	}
	return shops
}

// storeOrders is the reservation and the application of an order, of so many
// merchants in turn, who have all the money in the world.
func storeOrders(b *testing.B, a *harness.BareStore, merchants int) func(int) error {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), a.URL)
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close(context.Background())
	prefix := uuid.NewString()
	if _, err := conn.Exec(b.Context(), `INSERT INTO ledger_balances (merchant_id, mode, available, held)
		SELECT $1 || i, 'live', 1000000000000, 0 FROM generate_series(0, $2::INT8 - 1) AS i`, prefix, merchants); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	return func(int) error { return storeOrder(a, fmt.Sprint(prefix, int(next.Add(1))%merchants)) }
}

func storeOrder(a *harness.BareStore, merchant string) error {
	now := time.Now()
	m := movement.Movement{
		Key: movement.Key{Owner: movement.Owner{MerchantID: merchant, Mode: "live"}, Kind: manifest.Order, Reference: uuid.NewString()},
		ID:  movement.NewID(), Operation: "/ppob/order", Provider: "ppob", Amount: 5_100, Quote: json.RawMessage(`{"type":"Prepaid","sku":"S5","target":"081200001230"}`),
		Request:   json.RawMessage(`{"body":{"ref_id":"3d0f5a2e-6f0f-4c55-9d7c-1a9a3f0f6a11","sku":"S5","target":"081200001230"},"path":"/ppob/order"}`),
		RequestID: uuid.NewString(), PolicyVersion: uuid.NewString(), DecisionID: uuid.NewString(),
		ConnectionOwner: manifest.OwnerPlatform, ConnectionVersion: 1, ConnectionAccount: "sb0123456789ab",
		Attempt: 1, CreatedAt: now, SendBy: now.Add(5 * time.Second),
		Polled: movement.Polled{DueAt: now.Add(time.Minute)}, Purchase: movement.Purchase{Cost: 5_100, Charge: movement.Charged},
	}
	reserved, ours, err := a.Store.Reserve(a.B.Context(), m)
	if err != nil || !ours {
		return fmt.Errorf("reserve: %t, %w", ours, err)
	}
	ends := ledger.EndCost(m.Cost)
	ends.Subject, ends.Attempt, ends.Provider, ends.At = uuid.UUID(reserved.ID), reserved.Attempt, m.Provider, now
	moved, err := a.Store.Apply(a.B.Context(), movement.Change{
		Movement: reserved, At: time.Now(),
		Transition: movement.Transition{
			Effect: movement.Move, From: []movement.State{movement.Submitting, movement.Acknowledged}, To: movement.Succeeded,
			Event: "done", Detail: `{"source":"call"}`,
			Result: json.RawMessage(`{"sn":"5992219827542715","message":"The order succeeded."}`), Cost: m.Cost, Posting: &ends,
		},
		Answer:   json.RawMessage(`{"ref_id":"` + m.Reference + `","sku":"S5","target":"081200001230","status":"Pending"}`),
		Callback: &movement.CallbackEvent{ID: uuid.New(), Event: "ppob.status_update", Body: json.RawMessage(`{"event":"ppob.status_update","data":{"status":"Success"}}`)},
	})
	if err == nil && !moved {
		err = fmt.Errorf("%s was not moved", m.Reference)
	}
	return err
}
