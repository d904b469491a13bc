package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// Clock tells what time it is at the database at this moment, not when a
// transaction began. It is the one clock that all replicas can read. It has a connection
// of its own: whoever keeps all others busy must not make the time look wrong.
func (s *Store) Clock(ctx context.Context) (time.Time, error) {
	now, err := dbsqlc.New(s.clock).Clock(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("store: clock: %w", err)
	}
	return now.UTC(), nil
}
