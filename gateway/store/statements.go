package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed-f006e74d/gerbang/gateway/movement"
	"github.com/seed-f006e74d/gerbang/gateway/store/dbsqlc"
	"github.com/seed-f006e74d/gerbang/sdk/money"
)

// Statement reads how far an account's statement was read, or ErrNotFound where no
// amount was ever reserved on the account.
func (s *Store) Statement(ctx context.Context, account movement.AccountID) (movement.Statement, error) {
	row, err := s.queries.StatementOf(ctx, uuid.UUID(account))
	if errors.Is(err, pgx.ErrNoRows) {
		return movement.Statement{}, ErrNotFound
	}
	if err != nil {
		return movement.Statement{}, fmt.Errorf("store: statement: %w", err)
	}
	return movement.Statement{
		Account: account, MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider, Cursor: row.Cursor, Through: row.Through.UTC(),
		PolledAt: orZero(row.PolledAt), DueAt: row.DueAt.UTC(),
	}, nil
}

// PollStatement takes the right to read an account's statement, if nobody has read it
// since before, and has it due again at until. A poll at a time that no right clock can
// show yet does not count.
func (s *Store) PollStatement(ctx context.Context, account movement.AccountID, now, before, until time.Time) (bool, error) {
	id := uuid.UUID(account)
	_, err := s.writing(id).PollStatement(ctx, dbsqlc.PollStatementParams{
		AccountID: id, Now: optional(now), Before: optional(before), Ahead: new(tooFar(now)), DueAt: micro(until), DueBucket: int32(account.Bucket()), //nolint:gosec // below movement.Buckets
	})
	return recorded("poll statement", err)
}

// RestStatement has a statement that is due at until due at next instead.
func (s *Store) RestStatement(ctx context.Context, account movement.AccountID, until, next time.Time) error {
	id := uuid.UUID(account)
	_, err := s.writing(id).RestStatement(ctx, dbsqlc.RestStatementParams{AccountID: id, Until: micro(until), DueAt: micro(next)})
	_, err = recorded("rest statement", err)
	return err
}

// DueStatements reads the statements of some buckets that are due, the oldest first.
// Since is a lower bound that keeps the scan short, zero for none. Of each it tells only
// whose it is, and its times.
func (s *Store) DueStatements(ctx context.Context, buckets []int, since, now time.Time, most int) ([]movement.Statement, error) {
	rows, err := s.queries.DueStatements(ctx, dbsqlc.DueStatementsParams{
		Buckets: narrow(buckets), Since: micro(since), Now: micro(now), Most: int32(most), //nolint:gosec // a page
	})
	due := make([]movement.Statement, len(rows))
	for i, row := range rows {
		due[i] = movement.Statement{
			Account: movement.AccountID(row.AccountID), MerchantID: row.MerchantID, Mode: row.Mode, Provider: row.Provider,
			PolledAt: orZero(row.PolledAt), DueAt: row.DueAt.UTC(),
		}
	}
	return due, wrap("due statements", err)
}

// OpenSales reads collections that are open on a statement's account, the oldest
// first, behind one of them.
func (s *Store) OpenSales(ctx context.Context, b movement.Statement, behind movement.Candidate, most int) ([]movement.Candidate, error) {
	var open []movement.Candidate
	for len(open) < most {
		rows, err := s.queries.OpenSales(ctx, dbsqlc.OpenSalesParams{
			MerchantID: b.MerchantID, Mode: b.Mode, Provider: b.Provider,
			Behind: micro(behind.CreatedAt), BehindID: uuid.UUID(behind.ID), Most: int32(most), //nolint:gosec // a page, whatever is missing: others' sales may fill it
		})
		if err != nil || len(rows) == 0 {
			return open, wrap("open sales", err)
		}
		for _, row := range rows {
			behind = movement.Candidate{
				ID: movement.ID(row.ID), Amount: money.Amount(row.Amount), State: movement.State(row.State), CreatedAt: row.CreatedAt.UTC(), ExpiresAt: orZero(row.ExpiresAt),
			}
			if movement.NewAccountID(b.Provider, b.Mode, row.ConnectionAccount) == b.Account {
				open = append(open, behind)
			}
		}
	}
	return open[:most], nil
}

// Import stores the lines that were read from a statement's cursor, and moves the
// cursor on, in one commit. It is false, and nothing was stored, where another has
// read from that cursor already. Each payment may be in the lines once.
func (s *Store) Import(ctx context.Context, now time.Time, b movement.Statement, lines []movement.ImportedLine, next string, through time.Time) (bool, error) {
	p := dbsqlc.ImportLinesParams{
		AccountID: uuid.UUID(b.Account), Cursor: b.Cursor, Next: next, Through: micro(through), Now: micro(now),
		Payments: []string{}, LineIds: []string{}, Amounts: []int64{}, Currencies: []string{}, Ats: []time.Time{}, Paids: []bool{},
		Reverseds: []bool{}, ReversedAts: []time.Time{}, Differents: []bool{}, Datas: []string{}, Faileds: []bool{},
	}
	for _, l := range lines {
		p.Payments, p.LineIds, p.Amounts = append(p.Payments, l.Payment), append(p.LineIds, l.ID), append(p.Amounts, int64(l.Amount))
		p.Currencies, p.Ats, p.Paids = append(p.Currencies, l.Currency), append(p.Ats, micro(l.At)), append(p.Paids, l.Paid)
		p.Reverseds, p.ReversedAts = append(p.Reverseds, !l.ReversedAt.IsZero()), append(p.ReversedAts, micro(l.ReversedAt))
		p.Differents, p.Datas, p.Faileds = append(p.Differents, l.Differs), append(p.Datas, l.Data), append(p.Faileds, l.Failed)
	}
	_, err := s.queries.ImportLines(ctx, p)
	return recorded("import", err)
}
