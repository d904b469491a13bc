package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/ledger"
	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Balance reads what a merchant has in a mode, nothing where it never had any.
func (s *Store) Balance(ctx context.Context, owner movement.Owner) (ledger.Balance, error) {
	row, err := s.single.Balance(ctx, dbsqlc.BalanceParams{MerchantID: owner.MerchantID, Mode: owner.Mode})
	if errors.Is(err, pgx.ErrNoRows) {
		return ledger.Balance{}, nil
	}
	if err != nil {
		return ledger.Balance{}, fmt.Errorf("store: balance: %w", err)
	}
	return ledger.Balance{Available: money.Amount(row.Available), Held: money.Amount(row.Held)}, nil
}

// BalanceAt is what a merchant had in a mode at a time, that moment included.
func (s *Store) BalanceAt(ctx context.Context, owner movement.Owner, at time.Time) (ledger.Balance, error) {
	return s.balanceBefore(ctx, owner, after(at))
}

// after is the first moment after a time that the database can tell from it.
func after(at time.Time) time.Time { return micro(at).Add(time.Microsecond) }

// balanceBefore adds up what a merchant had in a mode before a time: what the last
// snapshot says, and what is not in it.
func (s *Store) balanceBefore(ctx context.Context, owner movement.Owner, before time.Time) (ledger.Balance, error) {
	snapshot, err := s.queries.SnapshotBefore(ctx, dbsqlc.SnapshotBeforeParams{MerchantID: owner.MerchantID, Mode: owner.Mode, Before: before})
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return ledger.Balance{}, fmt.Errorf("store: balance at a time: %w", err)
	}
	rest, err := s.queries.BalanceSince(ctx, dbsqlc.BalanceSinceParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Since: snapshot.Until, Before: before,
	})
	if err != nil {
		return ledger.Balance{}, fmt.Errorf("store: balance at a time: %w", err)
	}
	return ledger.Balance{Available: money.Amount(snapshot.Available + rest.Available), Held: money.Amount(snapshot.Held + rest.Held)}, nil
}

// PlatformBalance is what the platform's accounts have at one provider; Provider
// is "" for operators' adjustments. Signs are the ledger's.
type PlatformBalance struct {
	Provider    string
	Margin      money.Amount
	Cost        money.Amount
	Deposit     money.Amount
	Adjustments money.Amount
}

// PlatformAt adds up the platform's accounts of a mode at a time, that moment
// included, for each provider in the order of their names.
func (s *Store) PlatformAt(ctx context.Context, mode string, at time.Time) ([]PlatformBalance, error) {
	rows, err := s.queries.PlatformAt(ctx, dbsqlc.PlatformAtParams{Mode: mode, Before: after(at)})
	if err != nil {
		return nil, fmt.Errorf("store: the platform's balance: %w", err)
	}
	balances := make([]PlatformBalance, len(rows))
	for i, row := range rows {
		balances[i] = PlatformBalance{
			Provider: row.Provider, Margin: money.Amount(row.Margin), Cost: money.Amount(row.Cost),
			Deposit: money.Amount(row.Deposit), Adjustments: money.Amount(row.Adjustments),
		}
	}
	return balances, nil
}

// Entry is a transaction as a merchant's statement shows it.
type Entry struct {
	ledger.Transaction
	Reference string         // the movement's, or the adjustment's
	Balance   ledger.Balance // after it
}

// AccountStatement reads a merchant's transactions in a mode with the balance after
// each, the oldest first: at or after from, before to, and after the last entry
// of the page before (nil: from the beginning).
func (s *Store) AccountStatement(ctx context.Context, owner movement.Owner, from, to time.Time, follows *Entry, most int) ([]Entry, error) {
	last := Entry{}
	if follows != nil {
		last = *follows
	} else {
		opening, err := s.balanceBefore(ctx, owner, micro(from))
		if err != nil {
			return nil, err
		}
		last.Balance = opening
	}
	rows, err := s.queries.AccountStatement(ctx, dbsqlc.AccountStatementParams{
		MerchantID: owner.MerchantID, Mode: owner.Mode, Since: micro(from), Before: micro(to),
		AfterAt: micro(last.At), AfterSubject: last.Subject, AfterAttempt: int32(last.Attempt), AfterStep: int16(last.Step), //nolint:gosec // as they were read
		BeforeLast: int32(most - 1), Most: int32(most), //nolint:gosec // a page
	})
	if err != nil {
		return nil, fmt.Errorf("store: statement: %w", err)
	}
	entries := make([]Entry, len(rows))
	for i, row := range rows {
		entry := entryOf(row)
		// Below zero, too: replicas' clocks may differ by more than two transactions.
		entry.Balance.Available = last.Balance.Available + entry.Available
		entry.Balance.Held = last.Balance.Held + entry.Held
		entries[i], last = entry, entry
	}
	return entries, nil
}

func entryOf(row dbsqlc.AccountStatementRow) Entry {
	return Entry{Reference: row.Reference, Transaction: ledger.Transaction{
		Subject: row.Subject, Attempt: int(row.Attempt), Step: ledger.Step(row.Step), Kind: ledger.Kind(row.Kind),
		Provider: row.Provider, At: row.At.UTC(),
		Legs: ledger.Legs{
			Available: money.Amount(row.Available), Held: money.Amount(row.Held), Margin: money.Amount(row.Margin),
			Cost: money.Amount(row.Cost), Deposit: money.Amount(row.Deposit), Adjustments: money.Amount(row.Adjustments),
		},
	}}
}
