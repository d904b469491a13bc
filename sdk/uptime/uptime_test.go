package uptime_test

import (
	"testing"

	"github.com/seed-f006e74d/gerbang/sdk/uptime"
)

func TestItGoesOn(t *testing.T) {
	t.Parallel()
	begun := uptime.Now()
	for range 1000 {
		if now := uptime.Now(); now < begun || now <= 0 {
			t.Fatalf("%v came after %v", now, begun)
		}
	}
}
