package limittest

import (
	"testing"
	"time"
)

func TestMemoryConforms(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	Conforms(t, &Buckets{Now: func() time.Time { return now }}, func(d time.Duration) { now = now.Add(d) })
}
