package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
)

// closeWithin bounds what closes a day of one account.
const closeWithin = time.Minute

// CloseDays takes the snapshot of one more closed day of each account on a page that
// has one, and returns the last account of the page, nobody behind the end, and how
// many snapshots there are more. It may be ended anywhere and run anywhere at once:
// whoever adds up a day comes to the same, and the first to write it stands. An error
// with an account is about those whose day can't be closed.
func (s *Store) CloseDays(ctx context.Context, follows movement.Owner, now time.Time, most int) (last movement.Owner, closed int, err error) {
	reading, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	accounts, err := s.queries.UnclosedDays(reading, dbsqlc.UnclosedDaysParams{
		AfterMerchant: follows.MerchantID, AfterMode: follows.Mode, Closed: ledger.Closed(now), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return movement.Owner{}, 0, fmt.Errorf("store: days to close: %w", err)
	}
	var faults []error
	for _, account := range accounts {
		last = movement.Owner{MerchantID: account.MerchantID, Mode: account.Mode}
		if account.Unclosed.IsZero() {
			continue
		}
		is, err := s.closeDay(ctx, last, account.Since, ledger.DayEnd(account.Unclosed))
		if err != nil {
			faults = append(faults, fmt.Errorf("store: close a day of %s in %s: %w", last.MerchantID, last.Mode, err))
		}
		if is {
			closed++
		}
	}
	return last, closed, errors.Join(faults...)
}

func (s *Store) closeDay(ctx context.Context, owner movement.Owner, since, until time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	rows, err := s.queries.CloseDay(ctx, dbsqlc.CloseDayParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Since: since, Until: until})
	return rows > 0, err
}
