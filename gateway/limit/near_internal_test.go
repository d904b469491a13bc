package limit

import (
	"log/slog"
	"testing"
	"time"
)

func TestAccountsNearAQuota(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	b := NewBatcher(nil, slog.New(slog.DiscardHandler))
	note := func(merchant, name, period string, used, limit int64) {
		b.note(Usage{Key{Merchant: merchant, Mode: "live", Name: name}, period}, used, limit)
	}
	note("mer_a", "calls", "2026-11", 80, 100)
	note("mer_a", "transfers", "2026-11", 96, 100)
	note("mer_b", "calls", "2026-11", 79, 100)
	note("mer_c", "calls", "2026-11", 100, 100)
	note("mer_d", "calls", "2026-10", 100, 100) // of a month that is over
	note("mer_e", "calls", "2026-11", 0, 0)     // whom nothing is allowed
	for percent, want := range map[int]int{80: 2, 95: 2, 100: 1} {
		if got := b.Near(now, percent); got != want {
			t.Errorf("%d accounts are at %d %%, want %d", got, percent, want)
		}
	}
	note("mer_c", "calls", "2026-11", 100, 200) // the limit was raised
	if got := b.Near(now, 80); got != 1 || len(b.near) != 2 {
		t.Errorf("%d accounts are left, of %d quotas", got, len(b.near))
	}
}
