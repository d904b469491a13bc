package store

import (
	"context"
	"fmt"
	"time"
)

// Clock tells what time it is at the database at this moment, not when a
// transaction began. It is the one clock that all replicas can read.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	now, err := s.queries.Clock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("store: clock: %w", err)
	}
	return now.UTC(), nil
}
