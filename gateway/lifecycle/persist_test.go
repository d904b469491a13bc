package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/lifecycle"
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
