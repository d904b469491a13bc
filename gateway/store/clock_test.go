package store_test

import (
	"context"
	"errors"
	"testing"
	"time"
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
