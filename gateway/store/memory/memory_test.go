package memory_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/gateway/store/memory"
	"github.com/seed-f006e74d/gerbang/gateway/store/storetest"
)

func TestConforms(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) storetest.Store { return memory.New() })
}
