package scenarios

import (
	"context"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store"
	keeping "github.com/seed-f006e74d/gerbang/gateway/store/memory"
)

// memory is the store in memory, with what tests read of the real one.
type memory struct{ *keeping.Store }

func newMemory() *memory { return &memory{keeping.New()} }

// Usage is what counts in a period.
func (m *memory) Usage(_ context.Context, owner movement.Owner, period string) ([]store.Used, error) {
	var used []store.Used
	for name, units := range m.UsedIn(owner, period) {
		used = append(used, store.Used{Name: name, Units: units})
	}
	return used, nil
}
