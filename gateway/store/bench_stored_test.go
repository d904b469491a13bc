package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// BenchmarkStored measures what a movement leaves in the database and writes to its log when
// it has ended and its callback is delivered: bytes of rows and indexes, and of WAL with the
// whole pages that a small database writes. The plan in deploy/SCALE.md goes by it. Bodies are
// about as long as those of the demo, and merchants are 1000.
func BenchmarkStored(b *testing.B) {
	for _, kind := range []string{"payment", "order"} {
		b.Run(kind, func(b *testing.B) {
			url := database(b)
			s := open(b, url, store.Options{MaxConns: 32})
			if s.Engine() != store.PostgreSQL {
				b.Skip("only PostgreSQL tells its log's bytes; of CockroachDB ask SHOW RANGES WITH DETAILS and the disks")
			}
			rich(b, url, 1000)
			const size, log = "SELECT pg_database_size(current_database())", "SELECT (pg_current_wal_insert_lsn() - '0/0')::INT8"
			bytes, wal := count(b, url, size), count(b, url, log)
			repeat(b, lifeOf(s, kind), 64)
			b.StopTimer()
			b.ReportMetric(float64(count(b, url, size)-bytes)/float64(b.N), "stored_B/op")
			b.ReportMetric(float64(count(b, url, log)-wal)/float64(b.N), "wal_B/op")
		})
	}
}

// lifeOf is the life of a payment or of an order that ends well, up to its callback.
func lifeOf(s *store.Store, kind string) payment {
	request := json.RawMessage(`{"path":"/payments/create","body":{"type":"qris","amount":15000,"external_id":"` + strings.Repeat("x", 24) +
		`","payer_email":"payer@example.com","description":"Two coffees"}}`)
	answer := json.RawMessage(`{"payment_id":"` + uuid.NewString() + `","qr_string":"` + strings.Repeat("0", 160) + `","expires_at":"2026-01-02T03:04:05Z"}`)
	var next atomic.Int64
	return func(ctx context.Context) error {
		m := draft(uuid.NewString())
		if kind == "order" {
			m = order(uuid.NewString(), movement.Charged)
		}
		m.Owner.MerchantID, m.Request = fmt.Sprint("mer_", next.Add(1)%1000), request
		m, _, err := s.Reserve(ctx, m)
		if err != nil {
			return err
		}
		if kind == "payment" {
			change := pending(m)
			change.Result, change.Answer = answer, answer
			if ok, err := apply(ctx, s, epoch, change); err != nil || !ok {
				return fmt.Errorf("pending: %v, %w", ok, err)
			}
			if m, err = s.MovementByID(ctx, m.ID); err != nil {
				return err
			}
		}
		change := posted(m, movement.Succeeded)
		change.Result, change.Answer, change.ProviderReference = answer, answer, "inv-1"
		event := &movement.CallbackEvent{ID: uuid.New(), Event: "payments.status_update", URL: m.CallbackURL, Body: answer}
		change.Callback = event
		if ok, err := apply(ctx, s, epoch.Add(time.Second), change); err != nil || !ok {
			return fmt.Errorf("succeeded: %v, %w", ok, err)
		}
		delivered := movement.Callback{CallbackKey: movement.CallbackKey{Owner: m.Owner, EventID: event.ID}, MovementID: m.ID, State: movement.CallbackWaiting}
		ok, err := s.RecordAttempt(ctx, movement.CallbackAttempt{
			Callback: delivered, At: epoch.Add(2 * time.Second), Took: time.Millisecond, Outcome: "delivered", Status: http.StatusOK, Then: movement.CallbackDelivered,
		})
		if err != nil || !ok {
			return fmt.Errorf("attempt: %v, %w", ok, err)
		}
		return nil
	}
}
