package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/tenants"
)

// TestPersistHasItsWholePatience tries a write for as long as it was told to, and no
// longer.
func TestPersistHasItsWholePatience(t *testing.T) {
	t.Parallel()
	for away, through := range map[time.Duration]bool{0: true, 23 * time.Hour: true, 25 * time.Hour: false} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			patience := lifecycle.Patience{For: 24 * time.Hour, Draw: func(n int) int { return n / 2 }}
			_, err := lifecycle.Persist(t.Context(), patience, func(context.Context) (struct{}, error) {
				if time.Since(begun) < away {
					return struct{}{}, errors.New("the database is away")
				}
				return struct{}{}, nil
			})
			if (err == nil) != through {
				t.Errorf("away for %v: %v after %v", away, err, time.Since(begun))
			}
		})
	}
}

// TestPersistRetriesNoVerdict: a verdict of our own is the same a moment later, so the write is tried once and its caller
// has the answer at once.
func TestPersistRetriesNoVerdict(t *testing.T) {
	t.Parallel()
	for _, verdict := range []error{
		movement.ErrOverridden, movement.ErrForeignAccount, movement.ErrInsufficient, movement.ErrInvalid, movement.ErrNotFound,
		&movement.NoAmountError{}, &movement.LimitError{Name: "day"}, tenants.ErrNotFound,
	} {
		synctest.Test(t, func(t *testing.T) {
			tries := 0
			patience := lifecycle.Patience{For: time.Hour, Draw: func(n int) int { return n / 2 }}
			_, err := lifecycle.Persist(t.Context(), patience, func(context.Context) (struct{}, error) {
				tries++
				return struct{}{}, fmt.Errorf("store: %w", verdict)
			})
			if tries != 1 || !errors.Is(err, verdict) {
				t.Errorf("%v: %v after %d tries", verdict, err, tries)
			}
		})
	}
}
