package store_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

// payment is the two commits of a payment.
type payment func(ctx context.Context) error

// shared is the store as it is, alone is without commits that are shared.
func shared(b *testing.B, url string, conns int32) payment {
	return ours(b, url, store.Options{MaxConns: conns})
}

func alone(b *testing.B, url string, conns int32) payment {
	return ours(b, url, store.Options{MaxConns: conns, OwnCommits: true})
}

func ours(b *testing.B, url string, options store.Options) payment {
	s := open(b, url, options)
	return func(ctx context.Context) error {
		m, reserved, err := s.Reserve(ctx, draft(uuid.NewString()))
		if err != nil || !reserved {
			return fmt.Errorf("reserve: %v, %w", reserved, err)
		}
		if ok, err := apply(ctx, s, epoch, pending(m)); err != nil || !ok {
			return fmt.Errorf("move: %v, %w", ok, err)
		}
		return nil
	}
}

// bare is the same statements and values without the store.
func bare(b *testing.B, url string, conns int32) payment {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		b.Fatal(err)
	}
	config.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(b.Context(), config)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return func(ctx context.Context) error {
		m := draft(uuid.NewString())
		var amount int64
		var attempt, sequence int32
		reserve, values := store.Reservation(m)
		if err := pool.QueryRow(ctx, reserve, values...).Scan((*uuid.UUID)(&m.ID), &attempt, &sequence, &amount); err != nil {
			return err
		}
		m.Attempt, m.Version = int(attempt), movement.FirstVersion(int(sequence))
		change := pending(m)
		change.At = epoch
		moves, values := store.Move(change)
		return pool.QueryRow(ctx, moves, values...).Scan(&sequence)
	}
}

// pending is the move of a payment that its provider has accepted.
func pending(m movement.Movement) movement.Change {
	change := move(m, movement.Pending)
	change.Result, change.Answer, change.ProviderReference = m.Request, m.Request, "inv-1"
	change.ExpiresAt, change.NextPoll = epoch.Add(time.Hour), epoch.Add(time.Minute)
	return change
}

// BenchmarkPayment measures the store's Reserve and Apply, with commits that are
// shared and without, beside the same two statements alone: one after the other
// and from 64 goroutines. The metric x_bare is how many times as fast as bare.
func BenchmarkPayment(b *testing.B) {
	for _, goroutines := range []int{1, 64} {
		var plain float64 // nanoseconds of a bare payment
		for _, way := range []struct {
			name string
			make func(*testing.B, string, int32) payment
		}{{"bare", bare}, {"store", shared}, {"store_own_commits", alone}} {
			b.Run(fmt.Sprintf("%s/%d", way.name, goroutines), func(b *testing.B) {
				pay := way.make(b, database(b), int32(min(goroutines, 32)))
				each := repeat(b, pay, goroutines)
				b.ReportMetric(1e9/each, "payments/s")
				if way.name == "bare" {
					plain = each
				} else if plain > 0 {
					b.ReportMetric(plain/each, "x_bare")
				}
			})
		}
	}
}

// repeat pays b.N times and returns the nanoseconds for each.
func repeat(b *testing.B, pay payment, goroutines int) float64 {
	ctx := b.Context()
	if err := pay(ctx); err != nil { // connects, and prepares the statements
		b.Fatal(err)
	}
	b.ResetTimer()
	if goroutines == 1 {
		for range b.N {
			if err := pay(ctx); err != nil {
				b.Fatal(err)
			}
		}
	} else {
		b.SetParallelism(max(1, goroutines/runtime.GOMAXPROCS(0)))
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := pay(ctx); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	return float64(b.Elapsed().Nanoseconds()) / float64(b.N)
}
