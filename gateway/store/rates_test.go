package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/limit/leasing"
	"github.com/seed-f006e74d/gerbang/gateway/limit/limittest"
	"github.com/seed-f006e74d/gerbang/gateway/store"
)

func TestRatesAreLeasedAsInMemory(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 8})
	limittest.Conforms(t, s, func(d time.Duration) {
		execute(t, url, fmt.Sprintf("UPDATE rates SET as_of = as_of - '%[1]d microseconds'::INTERVAL, spare_at = spare_at - '%[1]d microseconds'::INTERVAL", d.Microseconds()))
	})
}

func TestFullBucketsOfRatesAreDropped(t *testing.T) {
	t.Parallel()
	url := database(t)
	s := open(t, url, store.Options{MaxConns: 4})
	asks := []leasing.Ask{
		{Merchant: "mer_1", Mode: "live", Name: "default", PerSecond: 5, Burst: 10, Want: 10},
		{Merchant: "mer_1", Mode: "test", Name: "default", PerSecond: 5, Burst: 10, Owed: 3},
		{Merchant: "mer_2", Mode: "live", Name: "slow", PerSecond: 0.001, Burst: 100, Want: 90}, // not full for a day
		{Merchant: "mer_3", Mode: "live", Name: "default", PerSecond: 5, Burst: 10, Want: 10},
	}
	if _, err := s.LeaseRates(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	if n, err := s.DropRates(t.Context(), 10); n != 0 || err != nil {
		t.Errorf("%d buckets in use were dropped, %v", n, err)
	}
	execute(t, url, "UPDATE rates SET as_of = as_of - '2 hours'::INTERVAL WHERE merchant_id <> 'mer_3'")
	for _, want := range []int64{1, 1, 0} {
		if n, err := s.DropRates(t.Context(), 1); n != want || err != nil {
			t.Errorf("%d buckets were dropped, %v, want %d", n, err, want)
		}
	}
	got, err := s.LeaseRates(t.Context(), []leasing.Ask{{Merchant: "mer_2", Mode: "live", Name: "slow", PerSecond: 0.001, Burst: 100}})
	if err != nil || got[0].Left > 18 || got[0].Left < 17 {
		t.Errorf("the slow bucket has %+v, %v, want the ten that were left and 7.2 of two hours", got, err)
	}
}

// BenchmarkLeaseRates is one question about as many buckets as one may have, and about one.
func BenchmarkLeaseRates(b *testing.B) {
	s := open(b, database(b), store.Options{MaxConns: 4})
	for _, n := range []int{1, 100, 1000} {
		asks := make([]leasing.Ask, n)
		for i := range asks {
			asks[i] = leasing.Ask{Merchant: fmt.Sprintf("mer_%04d", i), Mode: "live", Name: "default", PerSecond: 500, Burst: 1000, Want: 1}
		}
		b.Run(fmt.Sprintf("%d buckets", n), func(b *testing.B) {
			for b.Loop() {
				if _, err := s.LeaseRates(b.Context(), asks); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
