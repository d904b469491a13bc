package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// TestClock reads the database's clock, which goes on, and is this machine's here.
func TestClock(t *testing.T) {
	t.Parallel()
	s := fresh(t)
	begun := time.Now()
	first, err := s.Clock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := s.Clock(t.Context())
	if err != nil || !second.After(first) {
		t.Errorf("first %s, then %s, %v", first, second, err)
	}
	const apart = 10 * time.Millisecond // a clock that is set while we read
	if first.Before(begun.Add(-apart)) || second.After(time.Now().Add(apart)) || first.Location() != time.UTC {
		t.Errorf("read from %s on: %s and %s", begun, first, second)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if now, err := s.Clock(ended); !errors.Is(err, context.Canceled) || !now.IsZero() {
		t.Errorf("without an answer: %s, %v", now, err)
	}
}

// TestReadersDoNotStopTheClock: it is told while all connections are taken by who reads.
func TestReadersDoNotStopTheClock(t *testing.T) {
	t.Parallel()
	s := open(t, database(t), store.Options{MaxConns: 2})
	if err := s.Tx(t.Context(), func(*dbsqlc.Queries) error { // holds the one that there is
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := s.Clock(ctx)
		return err
	}); err != nil {
		t.Error(err)
	}
}
