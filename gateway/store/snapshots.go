package store

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// CloseDays takes the snapshot of one more closed day of each account on a page that
// has one, and returns the last account of the page, nobody behind the end, and how
// many snapshots there are more. It may be ended anywhere and run anywhere at once:
// whoever adds up a day comes to the same, and the first to write it stands.
func (s *Store) CloseDays(ctx context.Context, follows movement.Owner, now time.Time, most int) (last movement.Owner, closed int, err error) {
	accounts, err := s.queries.UnclosedDays(ctx, dbsqlc.UnclosedDaysParams{
		AfterMerchant: follows.MerchantID, AfterMode: follows.Mode, Closed: ledger.Closed(now), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return movement.Owner{}, 0, fmt.Errorf("store: days to close: %w", err)
	}
	for _, account := range accounts {
		last = movement.Owner{MerchantID: account.MerchantID, Mode: account.Mode}
		if account.Unclosed.IsZero() {
			continue
		}
		rows, err := s.queries.CloseDay(ctx, dbsqlc.CloseDayParams{
			MerchantID: account.MerchantID, Mode: account.Mode, Since: account.Since, Until: ledger.DayEnd(account.Unclosed),
		})
		if err != nil {
			return movement.Owner{}, closed, fmt.Errorf("store: close a day: %w", err)
		}
		if rows > 0 {
			closed++
		}
	}
	return last, closed, nil
}
